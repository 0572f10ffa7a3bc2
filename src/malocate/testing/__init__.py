"""Checks that every estimator and every strategy must pass, ours and yours; pytest runs them.

    from malocate.testing import EstimatorChecks

    class TestMine(EstimatorChecks):
        estimator = MyEstimator(rank=3)

Each check is a method whose name says what must hold. Nothing here imports pytest.
"""

from malocate.testing.estimators import EstimatorChecks

__all__ = ["EstimatorChecks"]

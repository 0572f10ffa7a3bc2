"""Checks that every estimator and every strategy must pass, ours and yours; pytest runs them.

    from malocate.testing import EstimatorChecks, StrategyChecks

    class TestMyEstimator(EstimatorChecks):
        estimator = MyEstimator(rank=3)

    class TestMyStrategy(StrategyChecks):
        strategy = MyStrategy()

Each check is a method whose name says what must hold. Nothing here imports pytest.
"""

from malocate.testing.estimators import EstimatorChecks
from malocate.testing.strategies import StrategyChecks

__all__ = ["EstimatorChecks", "StrategyChecks"]

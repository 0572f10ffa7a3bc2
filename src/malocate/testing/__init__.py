"""Checks that every estimator, strategy and store must pass, ours and yours; pytest runs them.

    from malocate.testing import EstimatorChecks, StoreChecks, StrategyChecks

    class TestMyEstimator(EstimatorChecks):
        estimator = MyEstimator(rank=3)

    class TestMyStrategy(StrategyChecks):
        strategy = MyStrategy()

    class TestMyServer(StoreChecks):
        @pytest.fixture(autouse=True)
        def empty(self):
            self.url = "postgresql://…"  # an empty database, made for this check

Each check is a method whose name says what must hold. Nothing here imports pytest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from malocate.testing.estimators import EstimatorChecks
from malocate.testing.strategies import StrategyChecks

if TYPE_CHECKING:
    from malocate.testing.stores import StoreChecks

__all__ = ["EstimatorChecks", "StoreChecks", "StrategyChecks"]


def __getattr__(name: str) -> Any:
    if name == "StoreChecks":  # only this one needs a database
        from malocate.testing.stores import StoreChecks

        return StoreChecks
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

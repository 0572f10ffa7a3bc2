"""Checks of what the makers of bands are given: one sentence for each way to go wrong."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from malocate.errors import InvalidInput, InvalidType
from malocate.estimators.base import Completion, Estimator
from malocate.problem import Observations
from malocate.problem.checks import a
from malocate.problem.settings import check_share


def check_noise(declared: Any, scale: tuple[float, float] | None) -> None:
    """Refuse a noise variance that is no number of 0 or more, or impossible on the scale."""
    if declared is None:
        return
    if isinstance(declared, bool) or not isinstance(declared, Real):
        raise InvalidType(f"noise_variance is {declared!r}; it must be a number, or None.")
    if not 0.0 <= float(declared) < math.inf:
        raise InvalidInput(f"noise_variance is {declared!r}; it must be 0 or more, and finite.")
    if scale is not None and float(declared) > ((scale[1] - scale[0]) / 2) ** 2:
        raise InvalidInput(
            f"noise_variance is {declared!r}; answers from {scale[0]:g} to {scale[1]:g} cannot "
            f"vary by more than {((scale[1] - scale[0]) / 2) ** 2:g}. Give a variance, not a "
            "multiple of it, or check the scale."
        )


def check_request(estimator: Any, observations: Any, delta: Any, deliver: Any) -> None:
    """Refuse what is no estimator, no observations, no chance or no way to deliver."""
    check_share("delta", delta)
    if isinstance(estimator, type) or not isinstance(estimator, Estimator):
        raise InvalidType(
            f"error_band was given {estimator!r} as its estimator; it takes one with a `fit`, "
            "such as LowRankLeastSquares()."
        )
    if not isinstance(observations, Observations):
        raise InvalidType(f"error_band was given {a(observations)}; it takes Observations.")
    if deliver not in ("refit", "ensemble"):
        raise InvalidInput(f"deliver is {deliver!r}; choose 'refit' or 'ensemble'.")


def check_fit(done: Any, shape: tuple[int, int]) -> Completion:
    """Refuse what an estimator gave if it is no completion of the matrix that was asked about."""
    if not isinstance(done, Completion):
        raise InvalidType(f"The estimator's fit gave {a(done)}; it must give a Completion.")
    if done.shape != shape:
        raise InvalidInput(
            f"The estimator's fit gave a completion of shape {done.shape} for observations of "
            f"shape {shape}; it must complete the matrix that was asked about."
        )
    return done


def check_alike(completion: Completion, later: Observations) -> None:
    """Refuse a completion of another matrix than the one the answers are about."""
    if completion.shape != later.shape:
        raise InvalidInput(
            f"The completion has shape {completion.shape} and the later answers have shape "
            f"{later.shape}; judge a completion by answers about the same matrix."
        )
    both = completion.labels is not None and later.labels is not None
    if both and tuple(map(tuple, completion.labels or ())) != tuple(map(tuple, later.labels or ())):
        raise InvalidInput(
            "The completion and the later answers have other labels, or the same in another "
            "order; read the later answers with labels=completion.labels."
        )

"""Standings for tests: one by hand, and Hypothesis's, with our strategies."""

from __future__ import annotations

import math

from hypothesis import strategies as st

from malocate import GoodAllocation, MALocate, Oracle, Standing, Uniform

INF = math.inf


def standing(name="north", entries=100, answers=50, batch=10, **more):
    return Standing(name, entries, answers, **({"batch": batch, "se": 0.0} | more))


def asked(strategy, *standings, budget=1_000.0):
    return strategy.plan(standings, budget).answers


SEGMENTS = st.builds(
    Standing,
    name=st.just("a"),
    entries=st.integers(1, 10**5),
    answers=st.one_of(st.just(0), st.integers(0, 10**4)),
    batch=st.integers(0, 300),
    room=st.one_of(st.just(INF), st.integers(300, 400)),
    short=st.integers(0, 2),
    multiple=st.sampled_from([1, 1, 2, 3]),
    estimate=st.floats(),
    se=st.floats(min_value=0),
    upper=st.floats(),
    error=st.floats(min_value=0),
    weight=st.floats(0.01, 100),
    cost=st.sampled_from([0.1, 0.25, 1.0, 1.0, 1 / 3, 7.0]),
)
OURS = st.sampled_from(
    [
        MALocate(),
        MALocate(p=1, by="upper"),
        Uniform(),
        Uniform("entries"),
        Oracle(2),
        GoodAllocation({"a": 3.0}),
    ]
)
SEVERAL = st.sampled_from([1, 2, 3, 5, 50])

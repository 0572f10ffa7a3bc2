"""Observations: what they hold, their parts and their joining."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from malocate.errors import InvalidInput, InvalidType
from malocate.problem import Observations

GOOD = {"rows": [0, 1, 1], "cols": [0, 2, 2], "values": [3.0, 4.0, 5.0], "shape": (2, 3)}


def observations(**changes):
    return Observations(**{**GOOD, **changes})


@st.composite
def surveys(draw, *, max_size=30):
    """Answers with or without draw numbers, designed replicates and probabilities."""
    shape = draw(st.tuples(st.integers(1, 5), st.integers(1, 5)))
    size = draw(st.integers(0, max_size))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows, cols = rng.integers(0, shape[0], size), rng.integers(0, shape[1], size)
    draws = rng.permutation(3 * size)[:size] if draw(st.booleans()) else np.arange(size)
    repeats = np.full(size, -1)
    if draw(st.booleans()):
        for later in range(size // 2, size):  # the first half stays fresh, the rest may repeat it
            if rng.random() < 0.5:
                first = rng.integers(0, size // 2) if size > 1 else later
                if first != later:
                    repeats[later] = draws[first]
                    rows[later], cols[later] = rows[first], cols[first]
    numbered = draw(st.booleans()) or (draws != np.arange(size)).any()
    return Observations(
        rows,
        cols,
        rng.normal(size=size),
        shape=shape,
        draws=draws if numbered else None,
        repeats=repeats if (repeats >= 0).any() else None,
        probability=rng.uniform(0.1, 1, size) if draw(st.booleans()) else None,
    )


# What they hold


def test_columns_have_the_promised_types():
    made = observations(rows=np.array([0, 1, 1], np.uint8), values=np.array([3, 4, 5], np.float32))
    kinds = [each.dtype.name for each in (made.rows, made.cols, made.values)]
    assert kinds == ["int32", "int32", "float64"]
    assert made.draws.tolist() == [0, 1, 2]
    assert made.repeats.tolist() == [-1, -1, -1]
    assert (made.draws.dtype, made.repeats.dtype) == (np.int64, np.int64)
    assert made.probability is None
    assert len(made) == 3


def test_zero_has_no_sign():
    made = observations(values=[-0.0, 0.0, -0.0])
    assert not np.signbit(made.values).any()


def test_what_was_given_is_kept():
    mask = np.zeros((2, 3), bool)
    mask[0, 1] = True
    made = observations(
        scale=(1, 5),
        labels=(["a", "b"], np.array([7, 8, 9])),
        mask=mask,
        draws=[4, 9, 11],
        repeats=[-1, -1, 9],
        probability=[0.5, 0.25, 0.25],
    )
    assert made.scale == (1.0, 5.0)
    assert made.labels == (("a", "b"), (7, 8, 9))
    assert (made.mask == mask).all()
    assert (made.draws.tolist(), made.repeats.tolist()) == ([4, 9, 11], [-1, -1, 9])
    assert made.probability is not None
    assert made.probability.tolist() == [0.5, 0.25, 0.25]


def test_seen_and_askable_cells_are_counted():
    mask = np.zeros((2, 3), bool)
    mask[0, 1:] = True
    made = observations(mask=mask)
    assert (made.n_seen, made.n_askable, made.share_seen) == (2, 4, 0.5)
    assert (observations().n_askable, observations().share_seen) == (6, 2 / 6)


def test_nothing_askable_has_no_share():
    made = Observations([], [], [], shape=(1, 1), mask=[[True]])
    assert np.isnan(made.share_seen)


def test_no_answers_are_fine():
    made = Observations([], [], [], shape=(2, 3), draws=[], repeats=[], probability=[])
    assert (len(made), made.n_seen, made.draws.tolist()) == (0, 0, [])
    assert [len(half) for half in made.halves()] == [0, 0]
    assert len(made.once()) == len(made.multi()) == 0
    assert [(len(train), len(judge)) for train, judge in made.folds(2)] == [(0, 0), (0, 0)]


def test_later_changes_of_the_callers_arrays_change_nothing():
    given = {
        "rows": np.array([0, 1], np.int32),
        "cols": np.array([0, 1], np.int32),
        "values": np.array([1.0, 2.0]),
        "mask": np.zeros((2, 2), bool),
        "draws": np.array([7, 3]),
        "repeats": np.array([-1, -1]),
        "probability": np.array([0.5, 0.5]),
    }
    before = {name: array.copy() for name, array in given.items()}
    made = Observations(**given, shape=(2, 2))
    assert all((given[name] == before[name]).all() for name in given)
    for array in given.values():
        array[...] = 1
    assert made == Observations(**before, shape=(2, 2))


@pytest.mark.parametrize("name", ["rows", "cols", "values", "draws", "repeats", "probability"])
def test_columns_cannot_be_written_in_any_view_or_copy(name):
    made = observations(draws=[5, 1, 2], repeats=[-1, -1, 1], probability=[0.5, 0.5, 0.5])
    copies = pickle.loads(pickle.dumps(made)), made.take([0, 1]), made.take(slice(2)), made.since(0)
    for each in (made, *copies, Observations.concat([made])):
        with pytest.raises(ValueError, match="read-only"):
            getattr(each, name)[0] = 1


def test_attributes_cannot_be_set_or_deleted():
    made = observations()
    with pytest.raises(AttributeError, match="Observations are immutable; scale cannot be set"):
        made.scale = (1, 5)
    with pytest.raises(AttributeError, match="Observations are immutable; rows cannot be deleted"):
        del made.rows


@given(surveys())
def test_pickles(made):
    again = pickle.loads(pickle.dumps(made))
    assert again == made
    assert again.entries.means.tobytes() == made.entries.means.tobytes()


@pytest.mark.parametrize(
    "change",
    [
        {"rows": [0, 1, 0]},
        {"cols": [0, 2, 1]},
        {"values": [3, 4, 4]},
        {"shape": (2, 4)},
        {"scale": (1, 5)},
        {"labels": (["a", "b"], ["x", "y", "z"])},
        {"mask": np.zeros((2, 3), bool)},
        {"draws": [0, 1, 3]},
        {"repeats": [-1, -1, 1]},
        {"probability": [0.5, 0.5, 0.5]},
    ],
    ids=lambda change: next(iter(change)),
)
def test_equality_is_by_content(change):
    assert observations() == observations(draws=[0, 1, 2], repeats=[-1, -1, -1])
    assert observations() != observations(**change)
    assert observations(**change) == observations(**change)
    assert observations() != "something else"


def test_the_repr_is_short_and_informative():
    assert repr(observations()) == "Observations(2×3, 3 answers on 2 entries)"
    one = Observations([0], [0], [0.5], shape=(1, 2000), scale=(0, 0.5))
    assert repr(one) == "Observations(1×2000, 1 answer on 1 entry, scale 0–0.5)"


# Their parts


@given(surveys(), st.data())
def test_take_gives_the_same_by_places_and_by_mask(made, data):
    keep = np.array(data.draw(st.lists(st.booleans(), min_size=len(made), max_size=len(made))))
    keep = keep.astype(bool)
    part = made.take(keep)
    assert part == made.take(np.flatnonzero(keep))
    for name in ("rows", "cols", "values", "draws", "repeats"):
        assert (getattr(part, name) == getattr(made, name)[keep]).all()


@given(surveys(), st.integers(-40, 40), st.integers(-40, 40), st.sampled_from([1, 2, -1]))
def test_a_slice_is_a_view(made, start, stop, step):
    part = made.take(slice(start, stop, step))
    assert part == made.take(np.arange(len(made))[start:stop:step])
    assert len(part) == 0 or np.shares_memory(part.values, made.values)


@pytest.mark.parametrize(
    ("index", "sentence"),
    [
        ([0, 3], "index[1] is 3; there are 3 answers, counted from 0."),
        ([-1], "index[0] is -1; there are 3 answers, counted from 0."),
        ([1, 0, 1], "index names answer 1 more than once; an answer counts once."),
        ([True], "index marks 1 answers; there are 3."),
        ([0.5], "index has dtype float64; it must hold integers"),
        (slice(None, None, 0), "index.step is 0; it must be above or below."),
        (slice(0.5), "index.stop is 0.5; it must be an integer."),
        ([[0]], "index has 2 dimensions, shape (1, 1); it must be one-dimensional."),
    ],
)
def test_take_refuses_what_it_cannot_find(index, sentence):
    with pytest.raises((InvalidInput, InvalidType), match="^" + re.escape(sentence)):
        observations().take(index)


@given(surveys(), st.integers(-2, 100))
def test_since_goes_by_draw_number(made, draw):
    assert made.since(draw) == made.take(made.draws >= draw)


def test_since_is_a_view_where_draws_rise():
    made = observations(draws=[2, 5, 9])
    for rising in (made, made.take([0, 1, 2]), made.take([True, True, True]), made.take(slice(3))):
        for each in (rising, pickle.loads(pickle.dumps(rising))):
            assert each.since(5).draws.tolist() == [5, 9]
            assert np.shares_memory(each.since(5).values, each.values)
    grown = Observations.concat([made, observations()])
    assert np.shares_memory(grown.since(9).values, grown.values)
    assert len(made.since(2**70)) == 0
    for mixed in (made.take([1, 0, 2]), made.take(slice(None, None, -1))):
        assert sorted(mixed.since(5).draws.tolist()) == [5, 9]


@pytest.mark.parametrize("draw", [1.5, None, "1", True])
def test_since_wants_a_draw_number(draw):
    with pytest.raises(InvalidType, match=f"draw is {draw!r}; it must be an integer."):
        observations().since(draw)


@given(surveys(), st.integers(-2, 40), st.integers(1, 3))
def test_since_of_every_second_answer(made, draw, step):
    part = made.take(slice(1, None, step))
    assert part.since(draw) == part.take(part.draws >= draw)


@given(surveys())
def test_halves_cut_the_draws_in_two_and_keep_replicates_together(made):
    first, second = made.halves()
    fresh = [np.count_nonzero(half.repeats < 0) for half in (first, second)]
    assert fresh[0] - fresh[1] in (0, 1)
    assert len(first) + len(second) == len(made)
    origins = [np.where(half.repeats >= 0, half.repeats, half.draws) for half in (first, second)]
    assert not len(second) or origins[0].max() < origins[1].min()


def test_halves_of_plain_observations_are_views():
    made = observations()
    first, second = made.halves()
    assert (len(first), len(second)) == (2, 1)
    assert np.shares_memory(first.values, made.values)


@given(surveys())
def test_once_and_multi_split_by_visits(made):
    once, multi = made.once(), made.multi()
    assert len(once) + len(multi) == len(made)
    assert (once.entries.visits == 1).all()
    assert (multi.entries.visits >= 2).all()
    assert len(multi) == made.entries.visits[made.entries.visits >= 2].sum()


# Folds

counts = st.integers(1, 6)


@given(surveys(), counts, st.sampled_from([None, 0.05, 0.1]))
def test_every_answer_is_judged_by_a_fold_that_did_not_train_on_it(made, count, share):
    numbers = made.fold_numbers(count, salt="s", share=share)
    folds = list(made.folds(count, salt="s", share=share))
    assert len(folds) == count
    for fold, (train, judge) in enumerate(folds):
        assert judge == made.take(numbers == fold)
        assert not set(train.draws) & set(judge.draws)
        assert len(train) + len(judge) == len(made)
    if share is None:
        assert sum(len(judge) for _, judge in folds) == len(made)


@given(surveys(), counts)
def test_replicates_share_the_fold_of_their_draw(made, count):
    fold = dict(zip(made.draws.tolist(), made.fold_numbers(count).tolist(), strict=True))
    for draw, repeated in zip(made.draws.tolist(), made.repeats.tolist(), strict=True):
        assert repeated < 0 or fold[draw] == fold[repeated]


@given(surveys(), counts, st.randoms(use_true_random=False))
def test_a_draws_fold_is_the_same_in_every_view(made, count, random):
    fold = dict(zip(made.draws.tolist(), made.fold_numbers(count, salt=3).tolist(), strict=True))
    order = list(range(len(made)))
    random.shuffle(order)
    for part in (made.take(order), made.take(order[::3]), made.since(5), made.multi()):
        numbers = part.fold_numbers(count, salt=3).tolist()
        assert numbers == [fold[draw] for draw in part.draws.tolist()]


@given(surveys(), st.integers(0, 20), counts)
def test_growth_does_not_move_a_draw_to_another_fold(made, more, count):
    later = Observations([0] * more, [0] * more, [1.0] * more, shape=made.shape)
    assume(made.probability is None)
    grown = Observations.concat([made, later])
    before = made.fold_numbers(count, segment="north")
    assert (grown.fold_numbers(count, segment="north")[: len(made)] == before).all()


def test_folds_are_the_same_for_ever():
    made = Observations([0] * 12, [0] * 12, np.zeros(12), shape=(1, 1))
    assert made.fold_numbers(5).tolist() == [1, 2, 0, 0, 3, 3, 2, 3, 4, 2, 0, 3]
    assert made.fold_numbers(5, salt="a", segment="b").tolist() == [
        4,
        0,
        3,
        3,
        4,
        1,
        1,
        3,
        3,
        0,
        2,
        4,
    ]


def test_salt_and_segment_give_other_folds():
    made = Observations([0] * 200, [0] * 200, np.zeros(200), shape=(1, 1))
    keys = [(0, ""), (1, ""), ("1", ""), (0, "north"), ("north", ""), (0, "south")]
    found = [tuple(made.fold_numbers(5, salt=salt, segment=each)) for salt, each in keys]
    assert len(set(found)) == len(keys)


def test_folds_are_even_and_independent_of_each_other():
    size = 100_000
    made = Observations([0] * size, [0] * size, np.zeros(size), shape=(1, 1))
    one, two = made.fold_numbers(5, salt=0), made.fold_numbers(5, salt=1)
    table = np.bincount(5 * one + two, minlength=25)
    chi_square = ((table - size / 25) ** 2 / (size / 25)).sum()
    assert 24 - 4 * np.sqrt(48) < chi_square < 24 + 4 * np.sqrt(48)
    neighbours = np.bincount(5 * one[1:] + one[:-1], minlength=25)
    assert abs(neighbours - size / 25).max() < 5 * np.sqrt(size / 25)


def test_small_shares_leave_the_rest_in_no_fold():
    size = 100_000
    made = Observations([0] * size, [0] * size, np.zeros(size), shape=(1, 1))
    found = np.bincount(made.fold_numbers(4, share=0.05) + 1, minlength=5) / size
    assert found == pytest.approx([0.8, 0.05, 0.05, 0.05, 0.05], abs=0.006)


def test_a_share_of_one_over_count_is_the_default():
    made = Observations([0] * 50, [0] * 50, np.zeros(50), shape=(1, 1))
    assert (made.fold_numbers(3, share=1 / 3) == made.fold_numbers(3)).all()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"count": 0}, "count is 0; there must be at least one fold."),
        ({"count": 2.5}, "count is 2.5; it must be an integer."),
        ({"count": 5, "share": 0.3}, "share is 0.3; 5 folds of it must fit into the whole."),
        ({"count": True}, "count is True; it must be an integer."),
        ({"count": 5, "share": "0.1"}, "share is '0.1'; it must be a number."),
        ({"count": 5, "share": 0}, "share is 0; 5 folds of it must fit into the whole."),
        ({"count": 5, "salt": 0.5}, "0.5 cannot be part of a hash's key; use integers or text."),
    ],
)
def test_impossible_folds_are_refused(arguments, sentence):
    with pytest.raises((InvalidInput, InvalidType), match="^" + re.escape(sentence)):
        observations().fold_numbers(**arguments)


# Their joining


@given(surveys(), st.integers(0, 30), st.integers(0, 30))
def test_parts_join_to_the_whole(made, one, two):
    low, high = sorted((one, two))
    parts = [made.take(slice(low)), made.take(slice(low, high)), made.take(slice(high, None))]
    assert Observations.concat(parts) == made
    nested = Observations.concat([parts[0], Observations.concat(parts[1:])])
    assert nested == made


@given(surveys(), surveys())
def test_plain_parts_continue_the_numbers(one, two):
    parts = [
        Observations(each.rows % 2, each.cols % 2, each.values, shape=(2, 2))
        for each in (one, two, one)
    ]
    whole = Observations.concat(parts)
    assert whole.draws.tolist() == list(range(sum(map(len, parts))))
    assert whole.values.tolist() == [*one.values, *two.values, *one.values]
    assert Observations.concat([parts[0], Observations.concat(parts[1:])]) == whole
    assert Observations.concat([Observations.concat(parts[:2]), parts[2]]) == whole


def test_replicates_move_with_the_draws_they_repeat():
    one = Observations([0, 0], [0, 0], [1, 2], shape=(1, 1), repeats=[-1, 0])
    whole = Observations.concat([one, one])
    assert whole.draws.tolist() == [0, 1, 2, 3]
    assert whole.repeats.tolist() == [-1, 0, -1, 2]


def test_plain_answers_follow_given_numbers():
    numbered = observations(draws=[8, 2, 5])
    assert Observations.concat([numbered, observations()]).draws.tolist() == [8, 2, 5, 9, 10, 11]
    behind = Observations.concat([numbered, observations(draws=[0, 1, 3]), observations()])
    assert behind.draws.tolist()[-3:] == [9, 10, 11]
    later = observations().since(1)
    assert Observations.concat([later, observations()]).draws.tolist() == [1, 2, 3, 4, 5]


def test_a_batch_may_repeat_a_draw_of_an_earlier_batch():
    monday = observations()
    tuesday = observations(draws=[3, 4, 5], repeats=[0, -1, 1])
    whole = Observations.concat([monday, tuesday])
    assert whole.repeats.tolist() == [-1, -1, -1, 0, -1, 1]
    assert (whole.fold_numbers(9)[[3, 5]] == whole.fold_numbers(9)[[0, 1]]).all()


def test_a_batch_that_repeats_an_earlier_draw_at_another_cell_is_refused_when_joined():
    tuesday = observations(draws=[3, 4, 5], repeats=[1, -1, -1])
    with pytest.raises(InvalidInput, match=r"repeats\[3\] is draw 1, which is at another cell;"):
        Observations.concat([observations(), tuesday])


def test_probabilities_are_joined():
    one = observations(probability=[0.1, 0.2, 0.3])
    none = Observations([], [], [], shape=(2, 3))
    joined = Observations.concat([none, one, one]).probability
    assert joined is not None
    assert joined.tolist() == [0.1, 0.2, 0.3, 0.1, 0.2, 0.3]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"shape": (2, 4)}, "parts[1] differs from parts[0] in shape, (2, 4) instead of (2, 3);"),
        ({"scale": (1, 5)}, "parts[1] differs from parts[0] in scale, (1.0, 5.0) instead of None"),
        (
            {"labels": (["a", "b"], ["x", "y", "z"])},
            "parts[1] differs from parts[0] in labels; only answers about the same matrix",
        ),
        ({"mask": np.zeros((2, 3), bool)}, "parts[1] differs from parts[0] in mask; only"),
        ({"draws": [3, 1, 4]}, "draws[1] and draws[4] are both 1; each answer has a draw number"),
        (
            {"probability": [0.5, 0.5, 0.5]},
            "parts[0] has no draw probabilities, others have; give them for all or none.",
        ),
    ],
)
def test_parts_that_do_not_agree_are_refused(change, sentence):
    with pytest.raises(InvalidInput, match="^" + re.escape(sentence)):
        Observations.concat([observations(), observations(**change)])


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ([], "There are no parts to join; give at least one Observations."),
        (5, "parts is an int; it must be a list of Observations."),
        (observations(), "parts is an Observations; it must be a list of Observations."),
        ([observations(), [1, 2]], "parts[1] is a list, not an Observations."),
        ([observations().numbering], "parts[0] is a Draws, not an Observations."),
        ({"north": observations()}, "parts[0] is a str, not an Observations."),
    ],
)
def test_joining_nothing_or_something_else_is_refused(parts, sentence):
    with pytest.raises((InvalidInput, InvalidType), match="^" + re.escape(sentence)):
        Observations.concat(parts)

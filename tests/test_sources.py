"""Synthetic sources: the matrices are as described and the answers scatter around the truth."""

from __future__ import annotations

import numpy as np
import pytest
from draws import draws_of, part_of
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from malocate import InvalidInput, InvalidType, Synthetic
from malocate.sources import as_source


class Own:
    """A source that somebody wrote, with what it is given."""

    def __init__(self, **settings):
        vars(self).update(settings)

    def answer(self, asked, *key):
        return np.ones(len(asked))


MAKERS = [Synthetic.low_rank, Synthetic.ratings, Synthetic.decaying]


@pytest.fixture(params=MAKERS, ids=lambda maker: maker.__name__)
def make(request):
    return request.param


def test_low_rank_has_its_rank_and_unit_variance():
    truth = Synthetic.low_rank(shape=(300, 200), rank=10, rng=1).truth
    assert np.linalg.matrix_rank(truth) == 10
    assert truth.var() == pytest.approx(1, abs=0.15)


def test_decaying_has_its_spectrum_and_unit_mean_square():
    truth = Synthetic.decaying(shape=(40, 60), exponent=1.5, rng=1).truth
    values = np.linalg.svd(truth, compute_uv=False)
    assert values / values[0] == pytest.approx(np.arange(1, 41) ** -1.5)
    assert (truth**2).mean() == pytest.approx(1)


def test_noise_is_a_standard_deviation():
    source = Synthetic.low_rank(shape=(30, 20), rank=2, noise=0.3, rng=1)
    answers = source.observe(20_000, rng=2)
    residuals = answers.values - source.truth[answers.rows, answers.cols]
    assert residuals.std() == pytest.approx(0.3, rel=0.03)
    assert residuals.mean() == pytest.approx(0, abs=4 * 0.3 / np.sqrt(20_000))


@pytest.mark.parametrize("noise", [0.0, 0.5, 2.0])
def test_the_truth_of_ratings_is_the_mean_answer(noise):
    source = Synthetic.ratings(shape=(3, 2), rank=1, noise=noise, rng=1)
    answers = source.observe(60_000, rng=2)
    entries = answers.entries
    error = 5 * 4 / np.sqrt(entries.visits.min())  # five standard errors of the widest answer
    assert entries.means == pytest.approx(source.truth.ravel(), abs=error if noise else 1e-12)


def test_ratings_are_whole_numbers_on_the_scale():
    source = Synthetic.ratings(shape=(30, 20), rank=2, scale=(0, 10), rng=1)
    answers = source.observe(3_000)
    assert answers.scale == source.scale == (0, 10)
    assert set(answers.values) == set(range(11))


def test_cells_are_drawn_uniformly_with_replacement():
    answers = Synthetic.low_rank(shape=(4, 3), rank=1, rng=1).observe(24_000, rng=2)
    visits = answers.entries.visits
    assert len(visits) == 12
    assert ((visits - 2000) ** 2 / 2000).sum() < 31.3  # chi-square, 11 degrees, p = .001
    assert answers.probability is None


def test_row_weights_skew_the_rows_and_are_recorded():
    source = Synthetic.low_rank(shape=(3, 4), rank=1, rng=1)
    answers = source.observe(8_000, rng=2, row_weights=[3, 1, 0])
    shares = np.bincount(answers.rows, minlength=3) / 8_000
    assert shares == pytest.approx([0.75, 0.25, 0], abs=0.02)
    assert answers.probability == pytest.approx(np.where(answers.rows == 0, 0.75, 0.25) / 4)


def test_a_seed_gives_the_same_matrix_and_answers(make):
    one, two, other = (make(shape=(30, 20), rng=seed) for seed in (5, 5, 6))
    assert (one.truth == two.truth).all()
    assert (one.truth != other.truth).any()
    assert same(one.observe(200), two.observe(200))
    assert same(one.observe(200, rng=1), two.observe(200, rng=1))
    assert not same(one.observe(200), one.observe(200, rng=1))


def test_a_generator_moves_on(make):
    source, rng = make(shape=(30, 20)), np.random.default_rng(3)
    assert not same(source.observe(200, rng=rng), source.observe(200, rng=rng))
    assert same(source.observe(200, rng=3), source.observe(200, rng=np.random.default_rng(3)))


@given(n=st.integers(0, 300), more=st.integers(0, 300), skewed=st.booleans())
def test_more_answers_keep_the_first_ones(n, more, skewed):
    source = Synthetic.ratings(shape=(9, 7), rank=2)
    weights = np.arange(9) if skewed else None
    short, long = (source.observe(k, rng=4, row_weights=weights) for k in (n, n + more))
    for name in ("rows", "cols", "values"):
        assert (getattr(short, name) == getattr(long, name)[:n]).all()


def test_truth_at_agrees_with_the_dense_truth(make):
    source = make(shape=(30, 20), rng=2)
    rows, cols = np.indices(source.shape).reshape(2, -1)
    assert source.truth_at(rows, cols) == pytest.approx(source.truth.ravel())


def test_the_truth_is_closed_to_writing(make):
    with pytest.raises(ValueError, match="read-only"):
        make(shape=(3, 3), **({} if make == Synthetic.decaying else {"rank": 1})).truth[0, 0] = 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"shape": (0, 3)}, r"`shape` is \(0, 3\); both sides must be at least 1"),
        ({"rank": 0}, r"`rank` is 0; for shape \(200, 200\) it must be 1 to 200"),
        ({"rank": 201}, "`rank` is 201"),
        ({"noise": -1}, "`noise` is -1; it must be a finite number, at least 0"),
        ({"noise": np.nan}, "`noise` is nan"),
        ({"scale": (5, 1)}, r"`scale` is \(5, 1\); it must be two integers, low < high"),
        ({"scale": (1, 4.5)}, r"`scale` is \(1, 4.5\)"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(InvalidInput, match=message):
        Synthetic.ratings(**settings)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": -1}, "`n` is -1"),
        ({"n": 5, "row_weights": [1, 2]}, r"`row_weights` has shape \(2,\); it must be \(3,\)"),
        ({"n": 5, "row_weights": [1, -2, 2]}, "at least 0"),
        ({"n": 5, "row_weights": [0, 0, 0]}, "not all 0"),
        ({"n": 5, "row_weights": [1, np.inf, 2]}, "must be finite"),
    ],
)
def test_bad_requests_are_refused(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        Synthetic.low_rank(shape=(3, 3), rank=1).observe(**arguments)


@pytest.mark.parametrize("noise", [0.5, 2.0])
def test_the_truth_stays_exact_where_noise_differs(noise):
    source = Synthetic.ratings(shape=(3, 2), rank=1, noise=noise, rng=1)
    source = source.noisier(rows=[0, 1, 3], cols=[1, 2])
    entries = source.observe(60_000, rng=2).entries
    deviation = np.sqrt(entries.squares / entries.visits)
    error = 5 * deviation / np.sqrt(entries.visits)
    assert (np.abs(entries.means - source.truth.ravel()) <= error + 1e-12).all()
    assert (deviation[:2] == 0).all()
    assert (deviation[2:] > 0.3).all()


def test_noise_differs_by_row_and_column():
    source = Synthetic.low_rank(shape=(3, 2), rank=1, noise=0.5, rng=1)
    noisy = source.noisier(rows=[1, 2, 4]).noisier(cols=[1, 3])
    entries = noisy.observe(60_000, rng=2).entries
    expected = 0.5 * np.multiply.outer([1, 2, 4], [1, 3]).ravel()
    assert np.sqrt(entries.squares / entries.visits) == pytest.approx(expected, rel=0.05)
    assert (noisy.truth == source.truth).all()


def test_large_matrices_with_differing_noise_stay_cheap():
    side = 300_000
    source = Synthetic.low_rank(shape=(side, side), rank=2, rng=1).noisier(rows=np.ones(side))
    assert len(source.observe(100)) == 100
    assert "truth" not in vars(source)


def test_a_hard_matrix_repeats_a_block_of_zeros_and_levels():
    truth = Synthetic.hard((40, 23), rank=5, level=0.3, rng=1).truth
    block = truth[:, :5]
    assert (truth[:, :20] == np.tile(block, 4)).all()
    assert not truth[:, 20:].any()
    assert set(truth.ravel()) == {0, 0.3}
    assert 0.4 < (block > 0).mean() < 0.6
    assert np.linalg.matrix_rank(truth) == 5


@pytest.mark.parametrize("shape", [(23, 40), (40, 40), (5, 5), (7, 1)])
def test_a_hard_matrix_repeats_along_its_shorter_side(shape):
    rank = min(5, *shape)
    truth = Synthetic.hard(shape, rank=rank, level=1.0, rng=1).truth
    assert np.linalg.matrix_rank(truth) <= rank
    long_last = truth if shape[0] < shape[1] else truth.T
    last = min(shape) // rank * rank
    assert (long_last[:rank] == long_last[last - rank : last]).all()


def test_a_family_shares_its_column_factors():
    market = Synthetic.family(["a", "b"], [(40, 30), (50, 30)], [3, 5], noise=[0.1, 0.2], rng=1)
    a, b = market["a"], market["b"]
    assert (a.shape, b.shape, a.noise, b.noise) == ((40, 30), (50, 30), 0.1, 0.2)
    assert np.linalg.matrix_rank(np.vstack([a.truth, b.truth])) == 5
    assert b.truth.var() == pytest.approx(1, abs=0.3)


@pytest.mark.parametrize(("shared", "rank"), [(0, 8), (0.5, 6), (1, 4)])
def test_a_family_shares_as_much_as_asked(shared, rank):
    market = Synthetic.family(2, (40, 30), 4, shared=shared, rng=1)
    assert list(market) == ["1", "2"]
    stacked = np.vstack([source.truth for source in market.values()])
    assert np.linalg.matrix_rank(stacked) == rank


def test_a_family_can_rate():
    (source,) = Synthetic.family(["a"], (9, 7), 2, scale=(1, 5), noise=1.0).values()
    assert source.segment("a").scale == (1, 5)
    assert set(source.observe(900).values) == {1, 2, 3, 4, 5}


def test_a_constant_on_a_scale_is_its_middle():
    assert (Synthetic.constant((3, 2), scale=(1, 5)).truth == 3).all()
    assert (Synthetic.constant((3, 2), 4.0, scale=(1, 5)).observe(20).values == 4).all()
    assert Synthetic.constant((3, 2), noise=2.0).observe(9_999).values.std() == pytest.approx(
        2, rel=0.05
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Synthetic.family(2, [(3, 2), (3, 3)], 1), "who shares column factors"),
        (lambda: Synthetic.family(2, (3, 2), [1, 1, 1]), "`rank` has 3 for 2 members"),
        (lambda: Synthetic.family([], (3, 2), 1), "at least one member"),
        (lambda: Synthetic.family(2, (3, 2), 1, shared=1.5), "shared is 1.5"),
        (lambda: Synthetic.hard((3, 2), 3, 1.0), "`rank` is 3"),
        (lambda: Synthetic.constant((0, 2)), "both sides must be at least 1"),
        (lambda: Synthetic.constant((3, 2)).noisier(rows=[1, 2]), "`row_noise` has shape"),
        (lambda: Synthetic.constant((3, 2)).noisier(cols=[1, -2]), "`col_noise` must be finite"),
    ],
)
def test_bad_makings_are_refused(make, message):
    with pytest.raises(InvalidInput, match=message):
        make()


class TestKeyedAnswers:
    """Answers depend on key, draw and cell, and are distributed as those that are observed."""

    @pytest.mark.parametrize("make", [Synthetic.low_rank, Synthetic.ratings])
    def test_it_does_not_matter_how_draws_are_cut_into_calls(self, make):
        source, asked = make(shape=(9, 7), rank=2), draws_of((9, 7), 300)
        whole = source.answer(asked, 1, "a")
        order = np.random.default_rng(0).permutation(300)
        for part in (order[:120], order[120:121], order[121:]):
            assert (source.answer(part_of(asked, part), 1, "a") == whole[part]).all()

    def test_key_draw_and_cell_all_count(self):
        source = Synthetic.constant((9, 7), noise=1.0)
        asked, other = draws_of((9, 7), 300), draws_of((9, 7), 300, seed=1)
        first = source.answer(asked, 1, "a")
        assert not np.isin(source.answer(asked, 2, "a"), first).any()
        assert not np.isin(source.answer(asked, 1, "b"), first).any()
        moved = (other.rows != asked.rows) | (other.cols != asked.cols)
        assert ((source.answer(other, 1, "a") != first) == moved).all()

    def test_the_noise_is_gaussian(self):
        source = Synthetic.low_rank(shape=(30, 20), rank=2, noise=0.3, rng=1)
        asked = draws_of(source.shape, 20_000)
        noise = (source.answer(asked, 3, "a") - source.truth[asked.rows, asked.cols]) / 0.3
        assert stats.kstest(noise, "norm").pvalue > 0.001
        assert np.corrcoef(noise[1:], noise[:-1])[0, 1] == pytest.approx(0, abs=0.03)

    def test_repeats_of_one_cell_are_independent(self):
        asked = draws_of((1, 1), 20_000)
        noise = Synthetic.constant((1, 1), noise=1.0).answer(asked, 3, "a")
        assert stats.kstest(noise, "norm").pvalue > 0.001

    def test_ratings_are_distributed_as_observed(self):
        source = Synthetic.ratings(shape=(3, 2), rank=1, noise=1.0, rng=1).noisier(rows=[1, 2, 0])
        asked = draws_of(source.shape, 30_000)
        values = source.answer(asked, 3, "a")
        for cell, seen in cells_of(source.observe(30_000, rng=1)):
            here = values[(asked.rows == cell[0]) & (asked.cols == cell[1])]
            assert stats.ks_2samp(here, seen).pvalue > 0.001
            assert here.mean() == pytest.approx(source.truth[cell], abs=0.1)


class TestAsSource:
    def test_a_source_stays_itself(self):
        source = Synthetic.constant((3, 2))
        assert as_source(source, (3, 2)) is source

    def test_a_function_answers(self):
        source = as_source(lambda rows, cols: (rows * 10 + cols).tolist(), (3, 2))
        asked = draws_of((3, 2), 20)
        assert source.answer(asked, 1, "a").tolist() == (asked.rows * 10 + asked.cols).tolist()
        assert source.truth is None

    @pytest.mark.parametrize(
        ("thing", "kind", "message"),
        [
            (Synthetic.constant((3, 3)), InvalidInput, "The source has shape"),
            (3, InvalidType, "The source is an int; it must be a source"),
            (Synthetic, InvalidType, "The source is the class Synthetic itself; give one of its"),
            (Own(truth=None), InvalidType, r"The source, an Own, has no `shape`; give it one: \(3"),
            (Own(shape="ab"), InvalidType, "shape is 'ab'; both sides must be integers"),
            (Own(shape=(3, 2), truth=np.zeros((2, 3))), InvalidInput, r"truth has shape \(2, 3\)"),
            (Own(shape=(3, 2), truth=[[1], [2, 3]]), InvalidInput, "truth is a ragged list"),
            (Own(shape=(3, 2), truth="high"), InvalidType, "truth has dtype"),
        ],
    )
    def test_other_things_are_refused(self, thing, kind, message):
        with pytest.raises(kind, match=message):
            as_source(thing, (3, 2))

    def test_a_truth_may_be_left_out_or_be_a_list(self):
        asked = draws_of((3, 2), 5)
        untold = as_source(Own(shape=(3, 2)), (3, 2))
        assert (untold.truth, untold.shape) == (None, (3, 2))
        assert untold.answer(asked, 1, "a").tolist() == [1.0] * 5
        listed = as_source(Own(shape=[3, 2], truth=[[1, 2]] * 3), (3, 2))
        assert listed.truth[1:].tolist() == [[1, 2]] * 2

    @pytest.mark.parametrize(
        ("function", "message"),
        [
            (lambda rows, cols: [1.0], "gave 1 answers to 5 draws"),
            (lambda rows, cols: rows * np.nan, "an answer must be finite"),
            (lambda rows, cols: np.zeros((5, 1)), "it must be one-dimensional"),
        ],
    )
    def test_functions_that_do_not_answer_are_refused(self, function, message):
        with pytest.raises(InvalidInput, match=message):
            as_source(function, (3, 2)).answer(draws_of((3, 2), 5), 1)


def same(one, two):
    return all((getattr(one, k) == getattr(two, k)).all() for k in ("rows", "cols", "values"))


def cells_of(answers):
    """Give each cell with its answers."""
    for cell in np.ndindex(answers.shape):
        yield cell, answers.values[(answers.rows == cell[0]) & (answers.cols == cell[1])]

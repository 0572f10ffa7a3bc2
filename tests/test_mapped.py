"""Observations kept in a folder: the same as others in everything, but not in memory."""

from __future__ import annotations

import copy
import json
import pickle
import re
import shutil
import subprocess
import sys
import textwrap
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_observations import surveys

from malocate import CrossFit, LowRankLeastSquares, SoftImpute, Synthetic, error_band
from malocate.errors import InvalidInput, InvalidType
from malocate.problem import Observations, gathering, mapped
from malocate.problem.views import COLUMNS, FRAME

GOOD = {"shape": (3, 4), "scale": (1, 5)}


@pytest.fixture(scope="module")
def ratings():
    return Synthetic.ratings(shape=(60, 40), rank=2, rng=0).observe(2500, rng=1)


@pytest.fixture
def kept(ratings, tmp_path):
    ratings.save(tmp_path / "ratings")
    return Observations.open(tmp_path / "ratings")


@pytest.fixture(scope="class", params=[False, True], ids=["usual", "little memory"])
def little(request):
    """Bounds so small that everything is read, gathered and grouped in many blocks."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param:
            patch.setattr(mapped, "BLOCK", 16)
            patch.setattr(mapped, "HELD", 0)
            patch.setattr(gathering, "AT_ONCE", 2)
        yield


def in_folder(observations, tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept") / "answers"
    observations.save(folder)
    return Observations.open(folder, check=True)


def assert_alike(one, two):
    assert one == two
    assert two == one
    assert len(one) == len(two)
    assert repr(one) == repr(two)
    assert one.numbering.given == two.numbering.given
    assert not one.numbering.rising or (np.diff(one.draws) > 0).all()
    for name in ("shape", "indptr", "rows", "cols", "visits", "means", "squares"):
        np.testing.assert_array_equal(getattr(one.entries, name), getattr(two.entries, name))


# The same as others


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    return tmp_path_factory


class TestAlike:
    @given(observations=surveys())
    def test_what_is_opened_is_what_was_saved(self, observations, places, little):
        assert_alike(in_folder(observations, places), observations)

    @given(observations=surveys(), data=st.data())
    def test_parts_of_parts_are_the_same(self, observations, places, little, data):
        here, there = observations, in_folder(observations, places)
        for _ in range(3):
            index = data.draw(indices(len(here)))
            here, there = here.take(index), there.take(index)
            assert_alike(there, here)
            assert_alike(pickle.loads(pickle.dumps(there)), here)

    @given(observations=surveys(), count=st.integers(1, 4), salt=st.integers(0, 9))
    def test_folds_and_halves_are_the_same(self, observations, places, little, count, salt):
        there = in_folder(observations, places)
        np.testing.assert_array_equal(
            there.fold_numbers(count, salt=salt), observations.fold_numbers(count, salt=salt)
        )
        pairs = zip(
            there.folds(count, salt=salt), observations.folds(count, salt=salt), strict=True
        )
        for ours, others in [*pairs, (there.halves(), observations.halves())]:
            for one, two in zip(ours, others, strict=True):
                assert_alike(one, two)

    @given(observations=surveys())
    def test_a_part_is_saved_and_joined_like_others(self, observations, places, little):
        there = in_folder(observations, places)
        even = np.arange(len(there)) % 2 == 0
        assert_alike(in_folder(there.take(even), places), observations.take(even))
        parts = there.take(even), there.take(~even)
        assert Observations.concat(parts) == Observations.concat(
            [observations.take(even), observations.take(~even)]
        )

    def test_a_fit_is_the_same_to_the_bit(self, ratings, kept, little):
        for estimator in (LowRankLeastSquares(), SoftImpute(2.0)):
            here, there = estimator.fit(ratings), estimator.fit(kept)
            np.testing.assert_array_equal(here.left, there.left)
            np.testing.assert_array_equal(here.right, there.right)

    def test_a_band_is_the_same_to_the_bit(self, ratings, kept, little):
        settings = {"scheme": CrossFit(3), "salt": "same"}
        here = error_band(LowRankLeastSquares(rank=2), ratings, **settings)
        there = error_band(LowRankLeastSquares(rank=2), kept, **settings)
        assert (here.estimate, here.se, here.upper) == (there.estimate, there.se, there.upper)
        assert here.audit == there.audit
        cells = np.arange(10), np.arange(10)
        np.testing.assert_array_equal(here.interval(*cells).low, there.interval(*cells).low)

    def test_labels_and_a_mask_come_back(self, tmp_path):
        mask = np.zeros((2, 3), bool, order="F")
        mask[0, 1] = True
        labels = ["a", "b"], [1, 2.5, "x"]
        made = Observations([0], [0], [3], shape=(2, 3), labels=labels, mask=mask, scale=(1, 5))
        made.save(tmp_path / "labelled")
        found = Observations.open(tmp_path / "labelled", check=True)
        assert found == made
        assert found.n_askable == 5
        assert [type(each) for each in found.labels[1]] == [int, float, str]

    def test_columns_are_closed_to_writing(self, kept):
        for part in (kept, kept.take(slice(5, 9)), kept.take(np.arange(2500) % 2 == 0)):
            for name in ("rows", "cols", "values", "draws", "repeats"):
                with pytest.raises(ValueError, match="read-only"):
                    getattr(part, name)[0] = 1
            with pytest.raises(AttributeError, match="immutable"):
                part.rows = 1

    def test_an_unknown_attribute_is_one(self, kept):
        with pytest.raises(AttributeError, match="no attribute 'shap'"):
            _ = kept.take(np.arange(2500) % 2 == 0).shap
        assert not hasattr(kept, "__array__")


def indices(length):
    slices = st.slices(length) if length else st.just(slice(None))
    masks = st.lists(st.booleans(), min_size=length, max_size=length).map(
        lambda each: np.array(each, bool)
    )
    places = st.permutations(range(length)).map(lambda each: np.array(each[: length // 2], int))
    return slices | masks | places | places.map(np.sort)


# Blocks


class TestWrite:
    @given(observations=surveys(), cuts=st.lists(st.integers(0, 30), max_size=4))
    def test_blocks_are_joined(self, observations, places, cuts):
        ends = [0, *sorted(min(cut, len(observations)) for cut in cuts), len(observations)]
        columns = observations.rows, observations.cols, observations.values
        blocks = (tuple(each[a:b] for each in columns) for a, b in pairwise(ends))
        folder = places.mktemp("written") / "answers"
        written = Observations.write(folder, blocks, shape=observations.shape)
        assert_alike(written, Observations(*columns, shape=observations.shape))

    def test_a_bad_block_is_named_and_leaves_nothing(self, tmp_path):
        blocks = [([0, 1], [0, 1], [2, 3]), ([2], [4], [3])]
        words = r"^Block 1, after 2 answers: cols\[0\] is 4; shape \(3, 4\) has columns 0 to 3\.$"
        with pytest.raises(InvalidInput, match=words):
            Observations.write(tmp_path / "bad", blocks, **GOOD)
        assert list(tmp_path.iterdir()) == []

    def test_an_answer_at_a_masked_cell_is_refused(self, tmp_path):
        mask = np.eye(3, 4, dtype=bool)
        with pytest.raises(InvalidInput, match=r"^Block 0, .*\(1, 1\), which the mask marks"):
            Observations.write(tmp_path / "bad", [([1], [1], [3])], **GOOD, mask=mask)

    @pytest.mark.parametrize("blocks", [3, [3], [([0], [0])], [{"rows": [0]}]])
    def test_what_is_no_block_is_refused(self, blocks, tmp_path):
        with pytest.raises(InvalidType, match=r"\(rows, cols, values\)"):
            Observations.write(tmp_path / "bad", blocks, **GOOD)
        assert list(tmp_path.iterdir()) == []

    def test_a_walk_that_fails_leaves_nothing(self, tmp_path):
        def blocks():
            yield [0], [0], [3]
            raise OSError("the tape is torn")

        with pytest.raises(OSError, match="torn"):
            Observations.write(tmp_path / "bad", blocks(), **GOOD)
        assert list(tmp_path.iterdir()) == []

    def test_no_folder_is_written_over(self, kept, ratings, tmp_path):
        with pytest.raises(InvalidInput, match=r"something at .*ratings already; give another"):
            kept.save(tmp_path / "ratings")
        assert Observations.open(tmp_path / "ratings", check=True) == ratings

    def test_labels_that_json_does_not_know_are_refused(self, tmp_path):
        made = Observations([0], [0], [3], shape=(1, 1), labels=([("a", 1)], ["b"]))
        with pytest.raises(InvalidType, match=r"row label \('a', 1\) is a tuple; a folder keeps"):
            made.save(tmp_path / "bad")
        assert list(tmp_path.iterdir()) == []


# Folders that are none


class TestOpen:
    def refused(self, folder, words, **settings):
        with pytest.raises(InvalidInput, match=words):
            Observations.open(folder, **settings)

    def test_a_folder_that_is_not_there(self, tmp_path):
        self.refused(tmp_path / "none", "none is not there; `Observations.save`")

    def test_a_folder_that_is_none_of_ours(self, tmp_path):
        self.refused(tmp_path, "is no folder of observations")
        (tmp_path / "head.json").write_text("[1]")
        self.refused(tmp_path, "is no folder of observations")
        (tmp_path / "head.json").write_text("{")
        self.refused(tmp_path / "head.json", "is no folder of observations")

    @pytest.fixture
    def folder(self, kept):
        return kept.home.folder.place

    def test_a_folder_of_a_later_version(self, folder):
        head = json.loads((folder / "head.json").read_text())
        (folder / "head.json").write_text(json.dumps(head | {"version": 2}))
        self.refused(folder, r"later malocate \(format 2; this one reads up to 1\); update")

    def test_a_column_that_is_missing(self, folder):
        (folder / "cols.npy").unlink()
        self.refused(folder, "cols.npy cannot be read")

    def test_a_head_without_a_column(self, folder):
        head = json.loads((folder / "head.json").read_text())
        del head["sums"]["values"]
        (folder / "head.json").write_text(json.dumps(head))
        self.refused(folder, "is without values")

    @given(data=st.data())
    def test_a_column_that_is_cut_short(self, ratings, places, data):
        folder = places.mktemp("cut") / "answers"
        ratings.save(folder)
        whole = (folder / "values.npy").read_bytes()
        left = data.draw(st.integers(0, len(whole) - 1))
        (folder / "values.npy").write_bytes(whole[:left])
        self.refused(folder, rf"values\.npy is cut short: {left:,} of {len(whole):,} bytes")

    def test_a_column_of_another_kind_or_length(self, folder):
        np.save(folder / "rows.npy", np.zeros(2500, np.int64))
        self.refused(folder, "holds int64 .* promises int32")
        np.save(folder / "rows.npy", np.zeros(2501, np.int32))
        self.refused(folder, r"shape \(2501,\) where the head promises int32 of shape \(2500,\)")

    def test_a_column_of_something_else(self, folder):
        (folder / "rows.npy").write_bytes(b"x" * 20_000)
        self.refused(folder, "is no column of numbers")

    def test_a_changed_byte_is_found_by_the_check(self, folder, ratings):
        with (folder / "values.npy").open("r+b") as file:
            file.seek(-3, 2)
            file.write(b"\x01")
        assert len(Observations.open(folder)) == len(ratings)
        self.refused(folder, "values.npy is not what was written", check=True)


# Pickles


class TestPickle:
    def test_a_pickle_is_small_and_maps_the_same_file(self, ratings, kept):
        sent = pickle.dumps(kept)
        assert len(sent) < 1000 < len(pickle.dumps(ratings)) // 20
        assert pickle.loads(sent) == ratings
        assert copy.deepcopy(kept) == ratings

    def test_a_fold_is_sent_as_bits(self, ratings, kept):
        train, judge = next(kept.folds(3))
        assert len(pickle.dumps(train)) < 1000 + len(ratings) // 8
        assert pickle.loads(pickle.dumps((train, judge)))[1] == next(ratings.folds(3))[1]

    def test_what_was_grouped_is_not_sent(self, kept):
        _ = kept.entries
        assert "entries" not in vars(pickle.loads(pickle.dumps(kept)))

    def test_a_folder_that_was_replaced_is_refused(self, kept, ratings):
        sent = pickle.dumps(kept)
        place = kept.home.folder.place
        shutil.rmtree(place)
        with pytest.raises(InvalidInput, match="is not there"):
            pickle.loads(sent)
        ratings.take(slice(0, 9)).save(place)
        with pytest.raises(InvalidInput, match="replaced by other answers since"):
            pickle.loads(sent)

    def test_another_process_reads_it(self, kept):
        code = "import pickle, sys; print(pickle.load(sys.stdin.buffer).values.sum())"
        run = subprocess.run(
            [sys.executable, "-c", code], input=pickle.dumps(kept), capture_output=True, check=True
        )
        assert float(run.stdout) == kept.values.sum()

    def test_parts_know_what_all_of_them_share(self, kept):
        part = pickle.loads(pickle.dumps(kept.take(np.arange(2500) % 2 == 0)))
        for name in FRAME:
            assert getattr(part, name) == getattr(kept, name)
        assert {name for name in COLUMNS if name in vars(part)} == set()


# Memory


SCANNED = """
    import sys
    import threading
    import time
    import numpy as np
    from malocate import Observations
    from malocate.confidence.schemes import CrossFit

    ANSWERS, SHAPE, STEP = 16_000_000, (400, 300), 500_000

    def anonymous():
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) * 1024 for line in file if "RssAnon" in line)

    def blocks():
        rng = np.random.default_rng(0)
        for _ in range(ANSWERS // STEP):
            rows, cols = (rng.integers(0, side, STEP) for side in SHAPE)
            yield rows, cols, (rows + cols + rng.normal(size=STEP)).round()

    def watch():
        global peak
        while True:
            peak = max(peak, anonymous())
            time.sleep(0.002)

    peak = before = anonymous()
    threading.Thread(target=watch, daemon=True).start()
    kept = Observations.write(sys.argv[1] + "/many", blocks(), shape=SHAPE)
    parts = CrossFit(2).parts(kept, "salt", "")
    visits = [int(part.train.entries.visits.sum()) for part in parts]
    assert sum(visits) == ANSWERS, visits
    assert kept.entries.n_answers == ANSWERS
    kept.take(slice(1000, ANSWERS)).save(sys.argv[1] + "/copy")
    print(peak - before, 16 * ANSWERS)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.slow
def test_writing_folding_and_grouping_hold_little(tmp_path):
    """256 MB of answers at 120,000 cells: what stays in memory is the entries and the bits."""
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCANNED), str(tmp_path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    peak, data = (int(each) for each in re.findall(r"\d+", run.stdout))
    assert peak < 0.55 * data

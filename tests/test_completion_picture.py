"""The picture of a completion shows what it says."""

from __future__ import annotations

import numpy as np
import pytest

from malocate import Completion, Observations, Synthetic
from malocate.plots import completion_picture


def panels_of(figure):
    return [panel.images[0].get_array() for panel in figure.axes[:4]]


@pytest.fixture(params=[Synthetic.low_rank, Synthetic.ratings], ids=lambda make: make.__name__)
def source(request):
    return request.param(shape=(30, 20), rank=2, rng=1)


def test_the_panels_hold_truth_answers_completion_and_error(source):
    answers, done = source.observe(300), Completion(source.left + 0.1, source.right)
    truth, seen, completed, error = panels_of(completion_picture(source.truth, answers, done))
    assert np.sort(truth.data.ravel()) == pytest.approx(np.sort(source.truth.ravel()))
    assert np.sort(completed.data.ravel()) == pytest.approx(np.sort(done.dense().ravel()))
    assert (completed - truth).data == pytest.approx(error.data)
    assert np.sort(seen.compressed()) == pytest.approx(np.sort(answers.entries.means))


def test_rows_and_columns_are_sorted_alike_in_all_panels():
    sides = np.arange(5.0)[:, None], np.array([[3.0], [1.0], [2.0]])
    done, everything = Completion(*sides), np.indices((5, 3)).reshape(2, -1)
    answers = Observations(*everything, done.predict(*everything), shape=(5, 3))
    truth, seen, completed, error = panels_of(completion_picture(done.dense(), answers, done))
    assert (truth == completed).all()
    assert (seen == truth).all()
    assert (error == 0).all()
    assert np.linalg.matrix_rank(truth) == 1


def test_values_keep_the_scale_and_errors_are_centred(source):
    answers, done = source.observe(300), Completion(source.left + 0.1, source.right)
    figure = completion_picture(source.truth, answers, done)
    limits = [panel.images[0].get_clim() for panel in figure.axes[:4]]
    assert limits[0] == limits[1] == limits[2]
    assert source.scale is None or limits[0] == source.scale
    assert limits[3][0] == -limits[3][1] < 0

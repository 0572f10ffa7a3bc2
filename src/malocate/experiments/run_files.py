"""A run in a folder: design, rounds, completions and bands, in files that others can read too.

    run.json        what is where, and why the run stopped
    design.json     the design, every default written out
    rounds.csv      one line for each segment that a round asked, with the round's losses and why
    bands.json      what each segment's last band says
    001-north.npz   each segment's completion, as `Completion.save` writes it; the average of
                    several is one file for each

The file run.json is written last: a folder without it is not a run.
"""

from __future__ import annotations

import csv
import json
import re
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any

from malocate.confidence.ensemble import Ensemble
from malocate.design import Design
from malocate.errors import InvalidInput, MalocateError
from malocate.estimators.base import Completion
from malocate.experiments.run import Change, Record, Run
from malocate.experiments.saved_band import SavedBand
from malocate.rounds import Stop

FORMAT, VERSION = "malocate run", 1
HEAD, DESIGN, ROUNDS, BANDS = "run.json", "design.json", "rounds.csv", "bands.json"
_LOSS = "loss."  # before the name of each of a round's losses
_CHANGE = {"asked": int, "estimate": float, "upper": float, "error": float}


def save(run: Run, folder: Any) -> None:
    """Write a run to a folder that is new or empty, or holds an earlier run, which is replaced."""
    place = Path(folder)
    try:
        _clear(place)
        place.mkdir(parents=True, exist_ok=True)
        _write(run, place)
    except OSError as problem:
        raise InvalidInput(f"The run cannot be written to {place}: {problem.strerror}.") from None


def _write(run: Run, place: Path) -> None:
    files = {
        name: _save_completion(done, place, f"{number:03d}-{_slug(name)}")
        for number, (name, done) in enumerate(run.completions.items(), start=1)
    }
    run.design.save(place / DESIGN)
    _write_rounds(run.records, place / ROUNDS)
    bands = {name: SavedBand.of(band).to_plain() for name, band in run.bands.items()}
    _write_json(bands, place / BANDS)
    head = {
        "format": FORMAT,
        "version": VERSION,
        "stop": asdict(run.stop),
        "answers_left": None if run.answers_left is None else dict(run.answers_left),
        "completions": files,
    }
    _write_json(head, place / HEAD)


def load(folder: Any) -> Run:
    """Read a run that `save` wrote; its bands are `SavedBand`s."""
    place = Path(folder)
    head = _head(place)
    try:
        with _reading(place / HEAD):
            files, stop = dict(_completions(head)), Stop(**head["stop"])
        with _reading(place / ROUNDS):
            records = tuple(_read_rounds(place / ROUNDS))
        with _reading(place / BANDS):
            told = _read_json(place / BANDS)
            bands = {name: SavedBand.from_plain(band) for name, band in told.items()}
        design = Design.load(place / DESIGN)
        completions = {name: _load_completion(place, names) for name, names in files.items()}
    except FileNotFoundError as problem:
        missing = Path(problem.filename).name
        raise InvalidInput(f"The run in {place} is not whole: {missing} is missing.") from None
    return Run(design, records, completions, bands, stop, head.get("answers_left"))


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Name the file where something else stands in it than `save` writes."""
    try:
        yield
    except MalocateError as problem:
        raise type(problem)(f"{path}: {problem}") from None
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError, csv.Error) as problem:
        raise InvalidInput(
            f"{path} is not as `Run.save` writes it ({type(problem).__name__}: {problem}); take "
            "the folder from a copy, or simulate again."
        ) from None


def check_folder(place: Path) -> bool:
    """Refuse to save a run over anything but an earlier one; tell whether there is one."""
    if place.exists() and not place.is_dir():
        raise InvalidInput(f"{place} is a file; a run is saved to a folder.")
    if not place.exists() or not any(place.iterdir()):
        return False
    if not (place / HEAD).exists():
        raise InvalidInput(
            f"{place} holds something other than a saved run; choose a new or an empty folder."
        )
    return bool(_head(place))


def _clear(place: Path) -> None:
    """Take away an earlier run's files."""
    if not check_folder(place):
        return
    with _reading(place / HEAD):
        files = [name for _, names in _completions(_head(place)) for name in names]
    for name in (HEAD, DESIGN, ROUNDS, BANDS, *files):
        (place / name).unlink(missing_ok=True)


def _head(place: Path) -> dict[str, Any]:
    try:
        head = _read_json(place / HEAD)
    except (OSError, ValueError, RecursionError):
        head = {}
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise InvalidInput(f"{place} is not a saved run; `Run.save` writes such folders.")
    if not isinstance(head.get("version"), int):
        raise InvalidInput(f"{place / HEAD} tells no version of its format; it is not whole.")
    if head["version"] > VERSION:
        raise InvalidInput(
            f"{place} was written by a later malocate (format {head['version']}; this one reads "
            f"up to {VERSION}); update malocate to read it."
        )
    return head


def _completions(head: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Give each segment's files; only names without a folder, as `save` makes them."""
    for segment, names in head["completions"].items():
        if any(Path(name).name != name for name in names):
            raise InvalidInput(f"The saved run names files outside its folder: {names}.")
        yield segment, names


def _slug(name: str) -> str:
    """Give a part of a file name that every system takes; the number before it makes it unique.

    >>> _slug("Île-de-France / Ost"), _slug("北")
    ('ile-de-france-ost', 'segment')
    """
    ascii_only = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", ascii_only.lower())[:40].strip("-") or "segment"


def _save_completion(done: Completion | Ensemble, place: Path, stem: str) -> list[str]:
    """Write a completion, or each member of an average; give the files' names."""
    members = (done,) if isinstance(done, Completion) else done.members
    names = [f"{stem}.npz"]
    if isinstance(done, Ensemble):
        names = [f"{stem}.member-{number}.npz" for number in range(1, len(members) + 1)]
    for member, name in zip(members, names, strict=True):
        member.save(place / name)
    return names


def _load_completion(place: Path, names: list[str]) -> Completion | Ensemble:
    members = tuple(Completion.load(place / name) for name in names)
    return Ensemble(members) if ".member-" in names[0] else members[0]


def _write_rounds(records: tuple[Record, ...], path: Path) -> None:
    losses = list(records[0].losses) if records else []
    columns = ["round", "spent", "segment", *_CHANGE, *(_LOSS + name for name in losses), "why"]
    with path.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(columns)
        for number, record in enumerate(records, start=1):
            for change in record.changes:
                numbers = [getattr(change, name) for name in _CHANGE]
                totals = [record.losses[name] for name in losses]
                before = [number, record.spent, change.segment]
                lines.writerow([*before, *numbers, *totals, record.why])


def _read_rounds(path: Path) -> Iterator[Record]:
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        lines = list(reader)
    lacking = {"round", "spent", "segment", "why", *_CHANGE} - set(reader.fieldnames or ())
    if lacking:
        raise InvalidInput(f"there is no column {', '.join(sorted(lacking))}; it is not whole.")
    for _, group in groupby(lines, key=lambda line: int(line["round"])):
        own = list(group)
        losses = {n[len(_LOSS) :]: float(v) for n, v in own[0].items() if n.startswith(_LOSS)}
        changes = tuple(_change(line) for line in own)
        yield Record(float(own[0]["spent"]), changes, losses, own[0]["why"])


def _change(line: dict[str, str]) -> Change:
    numbers: dict[str, Any] = {name: kind(line[name]) for name, kind in _CHANGE.items()}
    return Change(segment=line["segment"], **numbers)


def _write_json(value: Any, path: Path) -> None:
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


def _read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))

"""What can go wrong with a database: each a clear sentence, and nothing is lost."""

from __future__ import annotations

import os
import re
import resource
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from crowd import SECONDS, process
from databases import database
from sqlalchemy import NullPool, create_engine, event, make_url

from malocate import Conflict, NotFound, StoreError
from malocate.store import Answer, Store
from malocate.store.migrations import MIGRATIONS
from malocate.testing.store_base import HOUR, fresh, planned

NOBODY = 65534
KEPT = sorted((Path(__file__).parent / "data").glob("schema-*.db"))


def make(url: str, draws: int = 20) -> None:
    """Make a campaign with one answer."""
    with closing(Store.open(url, create=True)) as store:
        campaign = store.create("tasting", "the design", now=0.0).id
        store.begin(campaign, planned(1, fresh(draws)), now=1.0)
        store.lend(campaign, 1, "Al", now=2.0, until=HOUR)
        store.tell(campaign, [Answer(0, 1, 3.5)], now=3.0)


def check(url: str) -> None:
    """See that the answer is there, and that the campaign goes on."""
    store = Store.open(url)
    campaign = store.find("tasting").id
    with store.looking(campaign) as look:
        assert [row[-1] for row in look.answered(0)] == [3.5]
    assert store.check(campaign).broken == ""
    assert store.lend(campaign, 1, "Cy", now=4.0, until=HOUR).fresh
    store.close()


@pytest.fixture
def file(tmp_path) -> Path:
    make(str(tmp_path / "tasting.db"))
    return tmp_path / "tasting.db"


@pytest.fixture
def public(request) -> Iterator[Path]:
    """Give a folder that everybody may enter."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
        Path(folder).chmod(0o755)


# the disk


def fill(store: Store) -> None:
    """Write until it fails."""
    campaign = store.find("tasting").id
    for number in range(2, 200):
        store.begin(campaign, planned(number, fresh(50, number=number, first=50 * number)), now=4.0)


def test_a_full_disk(file):
    store = Store.open(str(file))
    event.listen(
        store.database.engine,
        "connect",
        lambda connection, _: connection.execute("PRAGMA max_page_count=60").close(),
    )
    store.database.engine.dispose()
    with pytest.raises(StoreError, match="disk is full; nothing of this step was written"):
        fill(store)
    assert store.check(1).broken == ""  # it can still be read
    store.close()
    check(str(file))


class Limited:
    """Fills a file that may not grow, and leaves the sentence that it was told."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __call__(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
        store = Store.open(str(self.file))
        try:
            fill(store)
        except StoreError as problem:
            Path(f"{self.file}.said").write_text(str(problem))
        store.close()


def test_a_file_that_may_not_grow(file):
    run(Limited(file))
    said = Path(f"{file}.said").read_text()
    assert re.search("(disk refuses|disk is full).*nothing of this step was written", said)
    check(str(file))


# permissions


class Stranger:
    """Opens a file, asks and tells as somebody who may not, and leaves the sentence."""

    def __init__(self, file: Path, said: Path, create: bool = False) -> None:
        self.file, self.said, self.create = file, said, create

    def __call__(self) -> None:
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        try:
            store = Store.open(str(self.file), create=self.create)
            try:
                store.lend(1, 1, "Bo", now=4.0, until=HOUR)
            finally:
                store.close()
        except StoreError as problem:
            self.said.write_text(str(problem))


def said_to_a_stranger(public: Path, file: Path, create: bool = False) -> str:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        run(Stranger(file, Path(folder) / "said", create))
        return (Path(folder) / "said").read_text()


def run(work: Callable[[], None]) -> None:
    started = process(work)
    started.join(timeout=SECONDS)
    assert started.exitcode == 0


def test_a_file_that_may_not_be_written_to(public):
    make(str(public / "tasting.db"))
    public.chmod(0o777)
    for each in public.iterdir():
        each.chmod(0o444)
    said = said_to_a_stranger(public, public / "tasting.db")
    assert "cannot be" in said
    assert "permissions" in said
    for each in public.iterdir():
        each.chmod(0o644)
    check(str(public / "tasting.db"))


def test_a_folder_that_may_not_be_written_to(public):
    make(str(public / "tasting.db"))
    public.chmod(0o555)
    said = said_to_a_stranger(public, public / "tasting.db")
    assert "cannot be" in said
    assert "permissions" in said
    public.chmod(0o755)
    check(str(public / "tasting.db"))


def test_no_file_can_be_made_there(public):
    public.chmod(0o555)
    said = said_to_a_stranger(public, public / "new.db", create=True)
    assert "check its folder and its permissions" in said
    with pytest.raises(StoreError, match="check its folder"):
        Store.open(str(public / "missing" / "new.db"), create=True)


def test_no_file(tmp_path):
    with pytest.raises(NotFound, match=r"There is no database .*`malocate new` makes one"):
        Store.open(str(tmp_path / "missing.db"))
    assert list(tmp_path.iterdir()) == []


# files that are not ours, or not whole


def test_a_database_of_another_program(tmp_path):
    file = tmp_path / "other.db"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE recipes (name)")
    connection.close()
    before = file.read_bytes()
    for create in (False, True):
        with pytest.raises(StoreError, match="another program: it has the tables recipes"):
            Store.open(str(file), create=create)
    assert file.read_bytes() == before


def test_a_database_of_another_program_on_a_server(postgresql):
    with database(postgresql) as url:
        assert on_server(url, "CREATE TABLE recipes AS SELECT 'soup' AS name") is None
        for create in (False, True):
            with pytest.raises(StoreError, match="another program: it has the tables recipes"):
                Store.open(url, create=create)
        tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
        assert on_server(url, tables) == [("recipes",)]


def on_server(url: str, statement: str) -> list[tuple[object, ...]] | None:
    """Run a statement of somebody else."""
    with psycopg.connect(url) as connection:
        found = connection.execute(statement)
        return found.fetchall() if found.description else None


def test_a_file_that_is_no_database(tmp_path):
    file = tmp_path / "letter.txt"
    file.write_text("Dear all,\n" * 1000)
    with pytest.raises(StoreError, match="is no SQLite database"):
        Store.open(str(file), create=True)
    assert file.read_text() == "Dear all,\n" * 1000


def test_an_empty_file(tmp_path):
    (tmp_path / "empty.db").touch()
    with pytest.raises(NotFound, match="holds no campaign"):
        Store.open(str(tmp_path / "empty.db"))


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6, 0.95])
def test_a_torn_copy(file, tmp_path, share):
    whole = file.read_bytes()
    copy = tmp_path / "copy.db"
    copy.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(StoreError, match="damaged, such as by copying it while it was in use"):
        use(copy)
    check(str(file))


def use(copy: Path) -> None:
    """Do with a copy what a campaign does."""
    store = Store.open(str(copy))
    try:
        campaign = store.find("tasting").id
        store.check(campaign)
        store.counts(campaign)
        store.lend(campaign, 5, "Bo", now=4.0, until=HOUR)
    finally:
        store.close()


def test_a_copy_without_what_was_not_yet_in_the_file(tmp_path):
    """SQLite keeps the last changes beside the file: a copy of the file alone is an older state."""
    file, copy = tmp_path / "tasting.db", tmp_path / "copy.db"
    make(str(file))
    store = Store.open(str(file))
    store.lend(1, 3, "Bo", now=4.0, until=HOUR)
    assert Path(f"{file}-wal").stat().st_size
    shutil.copy(file, copy)
    store.close()
    older = Store.open(str(copy))
    found = older.check(1)
    assert (found.broken, found.events) == ("", 4)  # of five
    older.close()
    check(str(file))


# versions and names


def test_a_schema_newer_than_the_program(url):
    make(url)
    set_schema(url, "99")
    with pytest.raises(StoreError, match="schema 99 and this malocate knows up to"):
        Store.open(url)
    set_schema(url, str(len(MIGRATIONS)))
    check(url)


def set_schema(url: str, version: str) -> None:
    engine = create_engine(make_url(url.replace("postgresql:", "postgresql+psycopg:")))
    with engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE malocate_about SET value = '{version}'")
    engine.dispose()


def test_two_campaigns_of_one_name(url):
    make(url)
    with pytest.raises(Conflict, match="already holds a campaign 'tasting'; open it, or take"):
        make(url)
    check(url)


@pytest.mark.parametrize("kept", KEPT, ids=lambda file: file.stem)
def test_a_kept_database_opens_and_goes_on(kept, tmp_path):
    from malocate import Campaign

    file = Path(shutil.copy(kept, tmp_path / "kept.db"))
    with Campaign.open(file, clock=lambda: 1_001.0) as campaign:
        assert campaign.status().answered == 12
        (pending,) = campaign.ask(who="tablet")
        assert campaign.tell(pending, 1.0) == "answered"
        while tickets := campaign.ask(3, who="tablet"):
            campaign.tell_many((ticket, 2.0) for ticket in tickets)
        assert campaign.status().state == "done"
        assert campaign.store.check(campaign.id).broken == ""


def test_databases_are_kept():
    assert KEPT


# servers


def test_no_server():
    with pytest.raises(
        StoreError, match=r"server cannot be reached.*what was acknowledged is kept"
    ):
        Store.open("postgresql://nobody@127.0.0.1:1/tasting", create=True)


def test_no_such_database(postgresql):
    url = make_url(postgresql).set(database="missing").render_as_string(False)
    with pytest.raises(StoreError, match="has no such database"):
        Store.open(url, create=True)


def test_a_wrong_password(postgresql):
    with database(postgresql) as url:
        make(url)
        allow_by_password(url, "guest")
        right, wrong = (
            make_url(url).set(username="guest", password=word).render_as_string(False)
            for word in ("right", "wrong")
        )
        with pytest.raises(StoreError, match="refuses the user or the password") as told:
            Store.open(wrong)
        assert "wrong" not in str(told.value)  # the password is not shown
        Store.open(right).close()
        check(url)


def allow_by_password(url: str, user: str) -> None:
    """Make a user whom the server asks for a password."""
    parts = make_url(url).set(drivername="postgresql+psycopg")
    engine = create_engine(parts, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    with engine.connect() as connection:
        rules = Path(connection.exec_driver_sql("SHOW hba_file").scalar_one())
        if not os.access(rules, os.W_OK):
            pytest.skip("the rules of this server cannot be changed from here")
        text = f"local all {user} scram-sha-256\nhost all {user} all scram-sha-256\n"
        rules.write_text(text + rules.read_text())
        connection.exec_driver_sql(f"DROP ROLE IF EXISTS {user}")
        connection.exec_driver_sql(f"CREATE ROLE {user} LOGIN SUPERUSER PASSWORD 'right'")
        connection.exec_driver_sql("SELECT pg_reload_conf()")

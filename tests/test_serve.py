"""`malocate serve` as a real process: its link, its planner, its end, and a kill in the middle."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path

import pytest
from surveys import small_design
from typer.testing import CliRunner

from malocate import Campaign, InvalidInput
from malocate.cli import app
from malocate.cli.serve import check_openness
from malocate.server.access import new_token
from malocate.store import Tokens

PATIENCE = 300


@pytest.fixture
def url(tmp_path):
    path = tmp_path / "wines.db"
    with Campaign.create(path, small_design()) as campaign:
        campaign.plan()
    return path


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def until(true) -> None:
    """Wait for something, on a busy machine too."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        time.sleep(0.1)


class Served:
    """A server in a process of its own."""

    def __init__(self, url, port: int, *options: str) -> None:
        self.base, self.url = f"http://127.0.0.1:{port}", url
        command = [sys.executable, "-m", "malocate", "serve", str(url), "--port", str(port)]
        self.process = subprocess.Popen(
            [*command, *options], stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        for _ in range(6_000):
            assert self.process.poll() is None, self.process.stdout.read()
            with suppress(urllib.error.URLError, ConnectionError):
                if self.get("/readyz"):
                    break
            time.sleep(0.05)
        else:
            raise AssertionError("the server did not come up")

    def get(self, path: str, token: str = "", body: dict | None = None) -> dict:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        request = urllib.request.Request(self.base + path, data, headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def stop(self, how: int = signal.SIGTERM) -> int:
        if how == signal.SIGKILL:
            os.killpg(self.process.pid, how)
        else:
            self.process.send_signal(how)
        self.process.wait(timeout=PATIENCE)
        self.process.stdout.close()
        return self.process.returncode


def planners_of(url) -> list[str]:
    """The processes that plan for a database."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            told = (place / "environ").read_bytes().split(b"\0")
            if f"MALOCATE_URL={url}".encode() in told:
                found.append((place / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return [words for words in found if "malocate worker" in words]


@pytest.fixture
def serving(url):
    running: list[Served] = []

    def start(*options: str, port: int = 0) -> Served:
        running.append(Served(url, port or free_port(), *options))
        return running[-1]

    yield start
    for each in running:
        if each.process.poll() is None:
            each.stop(signal.SIGKILL)
        each.process.stdout.close()


def test_the_first_start_shows_the_owner_s_link_once_and_the_second_does_not(serving):
    first = serving("--no-planner")
    first.process.send_signal(signal.SIGTERM)
    words, _ = first.process.communicate(timeout=PATIENCE)
    (token,) = re.findall(r"/enter\?token=(\S+)", words)
    second = serving("--no-planner")
    assert second.get("/api/v1/campaigns", token) == ["wines"]
    second.process.send_signal(signal.SIGTERM)
    assert "token=" not in second.process.communicate(timeout=PATIENCE)[0]


def test_a_planner_runs_beside_the_server_and_ends_with_it(serving, url):
    served = serving("--open")
    path = "/api/v1/campaigns/wines"
    began = served.get(path)["round"]
    asked = served.get(f"{path}/ask", body={"n": 500, "who": "t"})["questions"]
    answers = [{"ticket": each["ticket"], "value": 3} for each in asked]
    served.get(f"{path}/tell", body={"answers": answers})
    until(lambda: served.get(path)["round"] > began)
    planners = planners_of(url)
    assert len(planners) == 1
    assert served.stop() == 0
    assert not planners_of(url)


def test_planners_are_told_where_to_fit(serving, url):
    served = serving("--open", "--jobs", "2")
    until(lambda: planners_of(url))
    assert all("--jobs 2 --attached" in words for words in planners_of(url))
    served.stop()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--no-planner", "--jobs", "2"), "--jobs is for planners, and --no-planner starts none"),
        (("--dask", "nowhere"), "it must be an address, tcp://host:8786"),
    ],
)
def test_planners_that_could_not_fit_are_refused_before_anything_is_served(url, options, words):
    done = CliRunner().invoke(app, ["serve", str(url), *options])
    assert done.exit_code == 2
    assert words in " ".join(done.output.split())


@pytest.mark.slow
def test_planners_end_when_their_server_is_killed(serving, url):
    served = serving("--open")
    until(lambda: planners_of(url))
    served.process.kill()
    served.process.wait()
    until(lambda: not planners_of(url))


@pytest.mark.slow
def test_a_server_killed_among_requests_loses_and_doubles_nothing(serving, url):
    with Campaign.open(url) as campaign:
        token = new_token(Tokens(campaign.store.database), campaign.id, "t", "asker")
    port = free_port()
    path, acknowledged = "/api/v1/campaigns/wines", []
    box = [serving("--no-planner", port=port)]

    def one(number: int) -> None:
        ticket, end = None, time.monotonic() + PATIENCE
        while time.monotonic() < end:  # a client that tries again until it is told
            try:
                if ticket is None:
                    body = {"who": f"tablet-{number}"}
                    asked = box[0].get(f"{path}/ask", token, body)["questions"]
                    if not asked:
                        return
                    ticket = asked[0]["ticket"]
                answers = {"answers": [{"ticket": ticket, "value": 1 + number % 5}]}
                (outcome,) = box[0].get(f"{path}/tell", token, answers)["outcomes"]
            except (OSError, HTTPException):
                time.sleep(0.05)
            else:
                assert outcome in ("answered", "same")
                acknowledged.append(ticket)
                return

    with ThreadPoolExecutor(8) as crowd:
        work = [crowd.submit(one, number) for number in range(100)]
        for enough in (10, 35, 60):  # of the 200 requests, so many pairs are done at each kill
            while len(acknowledged) < enough:
                time.sleep(0.01)
            box[0].stop(signal.SIGKILL)
            box[0] = serving("--no-planner", port=port)
        for each in work:
            each.result()
    with Campaign.open(url) as campaign:
        assert campaign.status().answered == len(acknowledged) == len(set(acknowledged)) == 100
        assert campaign.verify().ok


def test_a_newcomer_sees_a_campaign_move():
    port = free_port()
    command = [sys.executable, "-m", "malocate", "demo", "--serve", "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    seen: list[int] = []
    try:
        for _ in range(1_500):
            with suppress(OSError, HTTPException):
                path = f"http://127.0.0.1:{port}/api/v1/campaigns/wines"
                with urllib.request.urlopen(path, timeout=5) as answer:
                    seen.append(json.loads(answer.read())["answered"])
            if len(seen) > 1 and seen[-1] > seen[0]:
                break
            time.sleep(0.2)
    finally:
        process.send_signal(signal.SIGINT)
        code = process.wait(timeout=PATIENCE)
    assert seen[-1] > seen[0]
    assert code in (0, 130)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "malocate.example"])
def test_nothing_is_open_where_others_can_come(host):
    with pytest.raises(InvalidInput, match="no tokens"):
        check_openness(host, True)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_this_machine_alone_may_be_open(host):
    check_openness(host, True)

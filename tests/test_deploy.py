"""The page "Deploy": its unit file, its proxy and its backups, taken from it and tried."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.parse import urlencode

import pytest
import typer
from databases import database, pgserver
from surveys import small_design, value_of
from test_serve import Served, free_port

from malocate import Campaign
from malocate.cli import app
from malocate.server.access import new_token
from malocate.server.protection import LARGEST_BODY
from malocate.store import Tokens

PAGE = (Path(__file__).parents[1] / "docs" / "deploy.md").read_text(encoding="utf-8")
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def unit() -> configparser.ConfigParser:
    (text,) = [block for block in blocks("ini") if "[Service]" in block]
    found = configparser.ConfigParser(strict=False, interpolation=None)
    found.optionxform = str  # type: ignore[assignment]
    found.read_string(text)
    return found


def command_of(*names: str) -> typer.core.TyperCommand:
    found = typer.main.get_command(app)
    for name in names:
        found = found.commands[name]  # type: ignore[attr-defined]
    return found


def check_options(words: list[str]) -> None:
    """Let the program itself read the words, without doing anything."""
    names = [words[0]] + ([words[1]] if words[0] == "token" else [])
    command_of(*names).make_context(words[0], words[len(names) :])


def test_the_service_starts_a_command_that_there_is():
    service = unit()["Service"]
    program, *words = shlex.split(service["ExecStart"])
    assert program.endswith("/bin/malocate")
    check_options(words)
    assert "--open" not in words
    assert "MemoryDenyWriteExecute" not in service  # fits are compiled
    assert service["CacheDirectory"] in service["Environment"]
    assert unit()["Install"]["WantedBy"] == "multi-user.target"


def test_systemd_has_nothing_against_the_unit(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze here")
    (text,) = [block for block in blocks("ini") if "[Service]" in block]
    place = tmp_path / "malocate.service"
    place.write_text(text.replace("/opt/malocate/bin/malocate", sys.executable))
    command = ["systemd-analyze", "verify", "--man=no", str(place)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    about = [line for line in done.stderr.splitlines() if "malocate.service" in line]
    unknown = [line for line in about if "nknown" in line or "ailed to parse" in line]
    assert not unknown


def test_every_command_on_the_page_exists():
    text = "".join(blocks("text") + blocks("bash")).replace("\\\n", " ")
    found = re.findall(r"malocate/bin/malocate (.*)$|^malocate (.*)$", text, re.MULTILINE)
    commands = [shlex.split(one or other) for one, other in found]
    assert len(commands) >= 4
    for words in commands:
        check_options([word for word in words if word != "…"])


@pytest.fixture
def tasting(tmp_path):
    path = tmp_path / "tasting.db"
    with Campaign.create(path, small_design()) as campaign:
        campaign.plan()
        token = new_token(Tokens(campaign.store.database), campaign.id, "Ada", "asker")
    return path, token


class Proxied:
    """nginx with the page's own file, before a server; only names, ports and places differ."""

    def __init__(self, folder: Path, server: Served) -> None:
        self.folder, self.port, plain = folder, free_port(), free_port()
        self.base, self.log = f"https://localhost:{self.port}", folder / "access.log"
        text = blocks("nginx")[0]
        for before, after in {
            "listen 80;": f"listen 127.0.0.1:{plain};",
            "listen 443 ssl": f"listen 127.0.0.1:{self.port} ssl",
            "survey.example;": "localhost;",
            "/etc/letsencrypt/live/survey.example/fullchain.pem": f"{folder}/cert.pem",
            "/etc/letsencrypt/live/survey.example/privkey.pem": f"{folder}/key.pem",
            "/var/log/nginx/malocate.log": str(self.log),
            "http://127.0.0.1:8000": server.base,
        }.items():
            assert before in text, before
            text = text.replace(before, after)
        temporary = "".join(
            f"{kind}_temp_path {folder}/{kind};\n"
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        head = f"daemon off;\npid {folder}/pid;\nerror_log {folder}/error.log;\nevents {{}}\n"
        (folder / "nginx.conf").write_text(f"{head}http {{\n{temporary}{text}}}\n")
        _certificate(folder)
        self.plain = f"http://localhost:{plain}"
        self.process = subprocess.Popen(
            [str(NGINX), "-p", str(folder), "-c", str(folder / "nginx.conf")],
            stderr=subprocess.DEVNULL,
        )
        self._wait()

    def _wait(self) -> None:
        for _ in range(400):
            assert self.process.poll() is None, (self.folder / "error.log").read_text()
            with socket.socket() as line:
                if line.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError("nginx did not come up")


def _certificate(folder: Path) -> None:
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    files = ["-keyout", f"{folder}/key.pem", "-out", f"{folder}/cert.pem"]
    names = ["-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([*command.split(), *files, *names], check=True, capture_output=True)


@pytest.fixture
def proxied(tasting, tmp_path):
    if NGINX is None:
        pytest.skip("there is no nginx: `apt-get install nginx-light` brings it on Debian")
    server = Served(tasting[0], free_port(), "--no-planner")
    folder = tmp_path / "nginx"
    folder.mkdir()
    try:
        proxy = Proxied(folder, server)
        yield proxy
        proxy.process.terminate()
        proxy.process.wait(timeout=30)
    finally:
        server.stop()


def browser(folder: Path) -> tuple[urllib.request.OpenerDirector, CookieJar]:
    trusted = ssl.create_default_context(cafile=str(folder / "cert.pem"))
    jar = CookieJar()
    handlers = (
        urllib.request.HTTPSHandler(context=trusted),
        urllib.request.HTTPCookieProcessor(jar),
    )
    return urllib.request.build_opener(*handlers), jar


def test_the_proxy_on_the_page_keeps_what_protects(proxied, tasting):
    web, jar = browser(proxied.folder)
    answer = web.open(f"{proxied.base}/enter?token={tasting[1]}&next=/c/tasting")
    assert answer.headers["Strict-Transport-Security"] == "max-age=31536000"
    assert "default-src 'self'" in answer.headers["Content-Security-Policy"]
    (cookie,) = [each for each in jar if each.name == "malocate"]
    assert cookie.secure  # the server knows that TLS is in front of it
    page = web.open(f"{proxied.base}/c/tasting/answer?who=Ada").read().decode()
    ticket = re.search(r'name="ticket" value="([^"]+)"', page)[1]
    form = urlencode({"who": "Ada", "ticket": ticket, "value": "4", "does": "tell"}).encode()
    address = f"{proxied.base}/c/tasting/answer"
    for origin, status in (("https://evil.test", 403), (proxied.base, 200)):
        request = urllib.request.Request(address, form, {"Origin": origin})
        assert status_of(web, request) == status
    with Campaign.open(tasting[0]) as campaign:
        assert campaign.status().answered == 1
    large = urllib.request.Request(address, b"x" * (LARGEST_BODY + 300_000))
    assert status_of(web, large) == 413
    assert json.load(web.open(f"{proxied.base}/readyz")) == {"words": "ready"}
    with pytest.raises(urllib.error.HTTPError, match="301") as caught:
        urllib.request.build_opener(_Stay).open(f"{proxied.plain}/healthz")
    assert caught.value.headers["Location"] == "https://localhost/healthz"
    caught.value.close()
    log = proxied.log.read_text()
    assert '"GET /enter" 303' in log
    assert tasting[1] not in log
    assert ticket not in log
    assert "token" not in log


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


def status_of(web: urllib.request.OpenerDirector, request: urllib.request.Request) -> int:
    try:
        with web.open(request) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as problem:
        with problem:
            return problem.code
    except (ConnectionError, urllib.error.URLError):
        return 413  # the proxy closed the line before it had read everything


def shell(program: str, folder: Path, **names: str) -> str:
    """Run commands of the page, with our program in the place of the installed one."""
    ours = f'malocate() {{ "{sys.executable}" -m malocate "$@"; }}\n'
    ours += f'python3() {{ "{sys.executable}" "$@"; }}\nset -eu\n'
    tools = max(Path(pgserver().__file__).parent.glob("pginstall*/bin"))  # of the server's version
    environment = os.environ | {"PATH": f"{tools}:{os.environ['PATH']}"} | names
    done = subprocess.run(
        ["bash", "-c", ours + program],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def commands(*words: str) -> str:
    """The page's commands that have one of the words in them."""
    return "".join(b for b in blocks("bash") if any(word in b for word in words))


def answer_on(url, over: threading.Event, told: list[str]) -> None:
    with Campaign.open(url) as campaign:
        while not over.is_set():
            for ticket in campaign.ask(3, who="field"):
                campaign.tell(ticket, value_of(ticket))
                told.append(ticket.id)


def test_an_sqlite_backup_is_sound_while_answers_come_in_and_can_be_restored(tasting, tmp_path):
    url, over, told = tasting[0], threading.Event(), []
    crowd = threading.Thread(target=answer_on, args=(url, over, told))
    crowd.start()
    try:
        while len(told) < 20:
            time.sleep(0.01)
        before = len(told)
        shell(commands("VACUUM"), tmp_path)
    finally:
        over.set()
        crowd.join()
    with Campaign.open(tmp_path / "backup.db") as copy:
        assert copy.status().answered >= before
        kept = copy.status().answered
    url.write_bytes(b"a disk that broke")
    shell(commands("cp backup.db"), tmp_path)
    with Campaign.open(url) as campaign:
        assert campaign.status().answered == kept
        assert campaign.ask(1, who="field")
        assert campaign.verify().ok


def test_a_postgresql_backup_is_sound_and_can_be_restored(postgresql, tmp_path):
    with database(postgresql) as url, database(postgresql) as other:
        with Campaign.create(url, small_design(), name="tasting") as campaign:
            tickets = campaign.ask(40, who="field")
            campaign.tell_many([(each, value_of(each)) for each in tickets[:30]])
        shell(commands("pg_dump", "pg_restore"), tmp_path, MALOCATE_URL=url, RESTORED_URL=other)
        with Campaign.open(other) as restored:
            assert restored.status().answered == 30
            for each in tickets[30:]:  # tickets that were out are still good
                assert restored.tell(each.id, value_of(each)) == "answered"
            assert restored.tell(tickets[0].id, value_of(tickets[0])) == "same"

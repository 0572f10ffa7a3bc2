"""A real browser and a real server, for tests that skip where there is no Chromium."""

from __future__ import annotations

import os
import shutil
import socket
import threading
import time

import httpx2 as httpx
import uvicorn

from malocate.server import create_app

NAMES = ("chromium", "chromium-browser", "google-chrome")
WAY_OUT = "there is no Chromium: `make browser` installs it on Debian, or set CHROMIUM to its path"


def chromium() -> str | None:
    """Give the path of the system's Chromium, if there is one."""
    given = os.environ.get("CHROMIUM")
    return given or next(filter(None, map(shutil.which, NAMES)), None)


class Server:
    """A server of its own thread, which can be stopped and started again at the same address."""

    def __init__(self, url: str, *, open_to_all: bool = True) -> None:
        self._url, self._open = url, open_to_all
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        app = create_app(self._url, open_to_all=self._open)
        settings = {"log_level": "error", "ws": "none", "timeout_graceful_shutdown": 2}
        self._server = uvicorn.Server(uvicorn.Config(app, port=self.port, **settings))
        self._thread = threading.Thread(target=self._server.run)
        self._thread.start()
        for _ in range(2_000):
            if self._server.started:
                httpx.get(f"{self.address}/healthz", timeout=60).raise_for_status()
                return
            time.sleep(0.05)
        raise TimeoutError("The server did not start.")

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join()

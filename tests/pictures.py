"""Pictures of the pages for the documentation: python tests/pictures.py docs/pictures

A campaign as `malocate demo --serve` makes it, answered in part, in the system's Chromium.
With `--all`, every page at every width, in the light and in the dark, to be judged by eye.
"""

from __future__ import annotations

import argparse
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

from browsers import Server, chromium
from playwright.sync_api import Browser, sync_playwright

from malocate import Campaign
from malocate.cli.living import _rating, design_of, people

PAGES = {
    "campaigns": "/",
    "campaign": "/c/wines",
    "segment": "/c/wines/s/Lyon?rows=high&columns=high",
    "answer": "/c/wines/answer?who=Ada",
    "begin": "/c/wines/answer",
    "enter": "/enter",
    "problem": "/c/nowhere",
}
DOCS: dict[str, dict[str, Any]] = {
    "campaign": {"viewport": {"width": 1000, "height": 1000}},
    "segment": {"viewport": {"width": 1200, "height": 1150}},
    "answer": {"viewport": {"width": 390, "height": 480}, "color_scheme": "dark"},
}


def answered(url: str, rounds: int = 16) -> None:
    """Make the campaign, with some rounds answered and half of the next."""
    sources = people()
    with Campaign.create(url, design_of(sources), name="wines") as campaign:
        for _ in range(rounds):
            tickets = campaign.ask(1_000, who="the town")
            campaign.tell_many([(each, _rating(sources, each)) for each in tickets])
        campaign.plan()
        tickets = campaign.ask(60, who="the town", plan=False)
        campaign.tell_many([(each, _rating(sources, each)) for each in tickets[10:]])
        campaign.decline(tickets[0], "does not drink")
    with Campaign.create(url, design_of(sources), name="autumn"):
        pass  # nobody has been asked yet


def take(
    browser: Browser, address: str, path: str, file: Path, whole: bool = False, **settings: Any
) -> None:
    context = browser.new_context(base_url=address, **settings)
    page = context.new_page()
    page.goto(path)
    page.screenshot(path=file, full_page=whole)
    context.close()


def every(browser: Browser, address: str, folder: Path) -> None:
    for name, path in PAGES.items():
        for width, scheme in product((375, 1600), ("light", "dark")):
            settings: dict[str, Any] = {"viewport": {"width": width, "height": 900}}
            file = folder / f"{name}-{width}-{scheme}.png"
            take(browser, address, path, file, whole=True, color_scheme=scheme, **settings)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--all", action="store_true", help="every page, to be judged by eye")
    parser.add_argument("--url", help="a database that is there already")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as started:
        url = given.url or f"{temporary}/wines.db"
        if not Path(url).exists():
            answered(url)
        server = Server(url)
        browser = started.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        try:
            if given.all:
                every(browser, server.address, given.folder)
            for name, settings in DOCS.items():
                take(browser, server.address, PAGES[name], given.folder / f"{name}.png", **settings)
        finally:
            browser.close()
            server.stop()


if __name__ == "__main__":
    main()

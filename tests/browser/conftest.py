"""Chromium, and a small site built once a session: from file:// and under a sub-path of a real HTTP server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, sync_playwright
from playwright.sync_api import TimeoutError as NotInTime

from generator.edition import paths
from generator.publishing.publish import Options, publish
from tests.browser.checks import CSP_WATCH, ROOT
from tests.browser.site import EARLIER, LIVE, REMOVED, SIMULATED, content_folder
from tests.serving import QuietFiles, served_folder

CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SUB_PATH = "/some/project/"
ARTEFACTS = ROOT / "artefacts" / "screenshots"


@dataclass(frozen=True)
class BuiltSite:
    """A published site: its folder, and its two addresses, each ending in a slash."""

    root: Path
    http: str

    @property
    def file(self) -> str:
        """The address of the folder on this disk."""
        return f"{self.root.as_uri()}/"

    @property
    def kinds(self) -> dict[str, str]:
        """One page of every kind, path below the root by name."""
        model, concept, group = "sim-alpha/one", "age_stance_0", "g1"
        kinds = {
            "start": "index.html",
            "runs": "runs/index.html",
            "changes": paths.CHANGES_PAGE,
            "history": paths.HISTORY_PAGE,
            "change": paths.change_page(SIMULATED, EARLIER),
            "leaderboard": paths.run_index(SIMULATED),
            "findings": paths.run_page(SIMULATED, "findings"),
            "preview-findings": paths.run_page(LIVE, "findings"),
            "preview-leaderboard": paths.run_index(LIVE),
            "preview-model": paths.model_page(LIVE, "alpha/one"),
            "preview-judging": paths.run_page(LIVE, "judging"),
            "preview-audit": paths.run_page(LIVE, "audit"),
            "preview-run": paths.run_page(LIVE, "run"),
            "tombstone": paths.run_index(REMOVED),
            "model": paths.model_page(SIMULATED, model),
            "pairs": paths.run_page(SIMULATED, "pairs"),
            "side": paths.run_page(SIMULATED, "side"),
            "planted": paths.run_page(SIMULATED, "planted"),
            "numbers": paths.numbers_page(SIMULATED, model),
            "attribute": paths.attribute_page(SIMULATED, "age"),
            "control": paths.attribute_page(SIMULATED, "control_tag"),
            "concept": paths.concept_page(SIMULATED, concept),
            "embed": f"{paths.figure(SIMULATED, f'models/{model}')}.html",
            "judging": paths.run_page(SIMULATED, "judging"),
            "audit": paths.run_page(SIMULATED, "audit"),
            "run": paths.run_page(SIMULATED, "run"),
            "explorer": paths.explorer_page(SIMULATED),
            "list": paths.receipts_list(SIMULATED, model),
            "set": paths.set_page(SIMULATED, model, concept),
            "row": paths.row_page(SIMULATED, model, concept, "direct", group, 0),
            "data": paths.data_page(SIMULATED),
            "dictionary": paths.data_file(SIMULATED, "DATA_DICTIONARY.html"),
            "about": "about.html",
            "changelog": "changelog.html",
            "search": paths.SEARCH_PAGE,
            "404": "404.html",
        }
        # Prose is one template: four pages of it stand for the rest, which the link check reads all the same.
        prose = ("index", "scoring", "worked-example", "glossary")
        return kinds | {f"methodology-{name}": paths.methodology_page(name) for name in prose}


class _SubPath(QuietFiles):
    """Serves a folder below SUB_PATH and nothing else."""

    def translate_path(self, path: str) -> str:
        if not path.startswith(SUB_PATH):
            return str(Path(self.directory) / "no-such-file")
        return super().translate_path("/" + path.removeprefix(SUB_PATH))


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder under a sub-path on loopback; yields its address."""
    with served_folder(folder, _SubPath) as address:
        yield address + SUB_PATH


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BuiltSite]:
    """The published site with every page kind."""
    folder = tmp_path_factory.mktemp("site")
    content = content_folder(folder / "content", ROOT)
    root = folder / "dist"
    publish(Options(out=root, content=content, preview=True, runs=(REMOVED,)))
    publish(Options(out=root, content=content, preview=True, remove=(REMOVED,)))
    with served(root) as address:
        yield BuiltSite(root, address)


# Ends with this package: while Playwright runs, no other test of this process can start an event loop of its own.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Chromium, or a skip that says how to get it."""
    if not Path(CHROMIUM).exists():
        pytest.skip(f"{CHROMIUM} is not there: make system")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


@dataclass
class Watched:
    """A page and everything that went wrong while it was open."""

    page: Any
    faults: list[str] = field(default_factory=list)

    def blocked(self) -> list[str]:
        """What the page's own policy blocked."""
        return list(self.page.evaluate("window.__blocked || []"))


@contextmanager
def opened(context: BrowserContext, origin: str) -> Iterator[Watched]:
    """Open a page that records script errors, console errors, failed loads and requests beyond `origin`."""
    watched = Watched(context.new_page())
    page, faults = watched.page, watched.faults
    page.on("pageerror", lambda error: faults.append(f"script error: {error}"))
    page.on("console", lambda m: faults.append(f"console: {m.text}") if m.type in ("error", "warning") else None)
    # Aborted: the page was left before a picture came, which is no fault of the page.
    page.on(
        "requestfailed",
        lambda r: None if "ABORTED" in str(r.failure) else faults.append(f"failed: {r.url} {r.failure}"),
    )
    page.on("request", lambda r: None if r.url.startswith((origin, "data:")) else faults.append(f"beyond: {r.url}"))
    page.on("dialog", lambda d: (faults.append(f"dialog: {d.message}"), d.dismiss()))
    try:
        yield watched
    finally:
        page.close()


def comes_to(page: Any, is_there: Callable[[str], bool]) -> None:
    """Wait until the page's address is as wanted: it follows a key or a click, but not at once."""
    try:
        page.wait_for_url(is_there)
    except NotInTime:
        raise AssertionError(f"the page stayed at {page.url}") from None


@contextmanager
def context_of(
    browser: Browser, *, width: int = 1280, scheme: str = "light", scripts: bool = True
) -> Iterator[BrowserContext]:
    """Open a browser context with one size, colour scheme and choice of JavaScript."""
    made = browser.new_context(
        viewport={"width": width, "height": 740 if width < 600 else 900},
        color_scheme=scheme,
        java_script_enabled=scripts,
        reduced_motion="reduce",
    )
    made.set_default_timeout(15_000)
    made.add_init_script(CSP_WATCH)
    try:
        yield made
    finally:
        made.close()

"""What a site says of itself and how it is published: `content/site.toml`, read and checked whole.

Imports nothing heavy: a publish with nothing to do reads it, too.

See contract: publication, "Site settings".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, PrivateAttr, ValidationError

from generator.edition import paths
from generator.edition.colors import Colors, color_faults, load_palettes
from generator.edition.history import HISTORY, History, read_history
from generator.schema.bank import Frozen, validation_faults
from generator.schema.errors import InputError, raise_faults
from generator.schema.places import own_folder
from generator.schema.plain_text import control_faults
from generator.schema.toml_files import read_toml

SITE_FILE = Path("content/site.toml")
Mode = Literal["row", "folded", "files"]
HostName = Literal["plain", "github-pages", "cloudflare-pages", "netlify", "s3", "nginx"]
LOGO_BYTES = 200_000
# The pages of the program that a menu may name.
BUILT_IN = ("leaderboard", "receipts", "judging", "audit", "run", "data", "methodology", "runs", "search", "about")
_PAGE_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
_TAKEN_PAGES = frozenset(("index", "404", "search", "feed", "sitemap", "publication"))
_TAKEN_FOLDERS = frozenset(("runs", "assets", "pagefind"))
HOST_NAMES: tuple[HostName, ...] = ("plain", "github-pages", "cloudflare-pages", "netlify", "s3", "nginx")


class PublishSettings(Frozen):
    """How `publish` publishes where no option says otherwise.

    base_url: where the site lives, empty where that is not known. host: whose limits it keeps. mode: `auto` takes a
    page a row where the host has room. preview, withhold: as the options of those names.
    """

    base_url: str = ""
    host: HostName = "plain"
    mode: Literal["auto"] | Mode = "auto"
    preview: bool = False
    withhold: bool = False


class Licence(Frozen):
    """The license of the published data: its name, the address of its text, its SPDX id (empty where it has none)."""

    name: str
    url: str
    spdx: str = Field(default="", pattern=r"^[A-Za-z0-9.+-]*$")


class MenuEntry(Frozen):
    """A link of the main menu: a page of the program by its name, or one of the site's own by its path.

    label: what it is called; a page of the program has a name of its own.
    """

    page: str
    label: str = ""


class Site(Frozen):
    """The words and settings of `content/site.toml`. An address may be empty; then no link is drawn.

    short_name: begins the names of files and records; empty, it is made from the title. logo: a picture beside
    site.toml, in the place of the program's own. menu: the whole main menu; empty, it is the program's own.
    front: the id of the run that the root shows; empty, and the newest live run is shown.
    """

    title: str
    short_name: str = Field(default="", pattern=r"^([a-z0-9][a-z0-9-]{0,39})?$")
    language: str = Field(default="en", pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$")
    direction: Literal["ltr", "rtl"] = "ltr"
    logo: str = Field(default="", pattern=r"^([A-Za-z0-9_-]+\.(svg|png))?$")
    colors: Colors = Colors()
    menu: tuple[MenuEntry, ...] = Field(default=(), strict=False)
    tagline: str
    description: str
    publisher: str
    contact: str
    contact_url: str = ""
    mismatch: str
    mismatch_url: str = ""
    code_url: str = ""
    front: str = ""
    data_licence: Licence
    publish: PublishSettings = PublishSettings()
    _folder: Path | None = PrivateAttr(default=None)
    _logo: bytes = PrivateAttr(default=b"")
    _history: History = PrivateAttr(default=History())

    @property
    def file_name(self) -> str:
        """What the names of files and records begin with."""
        words = re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")
        return self.short_name or words[:40].rstrip("-") or "benchmark"

    @property
    def logo_bytes(self) -> bytes:
        """The site's own logo, empty where it has none: read once, since pages may be made on other machines."""
        return self._logo

    @property
    def history(self) -> History:
        """What was withdrawn and superseded, from history.toml beside site.toml."""
        return self._history

    @property
    def pages(self) -> Path | None:
        """The folder of the site's own prose, beside its site.toml; None for a site not read from a file."""
        return self._folder / "pages" if self._folder is not None else None


def read_site(path: Path = SITE_FILE) -> Site:
    """Read the site's settings (contract: publication, "Site settings").

    Raises:
        InputError: the file is missing, or every fault of its shape, its addresses and its characters.
    """
    try:
        data = read_toml(path)
        site = Site.model_validate(data)
        site._folder = path.parent
        site._history = read_history(path.parent / HISTORY)
        faults = [f"{path}: {fault}" for fault in _read_logo(site, path.parent)]
    except FileNotFoundError:
        raise InputError(f"{path}: not found; it names the site's title, contact and data licence") from None
    except ValidationError as error:
        raise InputError(*validation_faults(error, str(path))) from None
    addresses = {
        "contact_url": site.contact_url,
        "mismatch_url": site.mismatch_url,
        "code_url": site.code_url,
        "data_licence.url": site.data_licence.url,
    }
    faults += [
        f"{path}: {key}: {url!r} is no address; use https://…, mailto:… or an empty string"
        for key, url in addresses.items()
        if url and _scheme(url) not in ("https", "http", "mailto")
    ]
    faults += [f"{path}: {fault}" for fault in _menu_faults(site)]
    if site.colors != Colors():
        css = (own_folder("site_templates") / "static" / "site.css").read_text(encoding="utf-8")
        faults += [f"{path}: {fault}" for fault in color_faults(site.colors, load_palettes(css))]
    raise_faults([*faults, *_publish_faults(site, str(path)), *control_faults(data, str(path))])
    return site


def _read_logo(site: Site, folder: Path) -> Iterator[str]:
    """Read a site's logo into it; yields what is wrong with the file."""
    file = folder / site.logo
    if not site.logo:
        return
    if not file.is_file():
        yield f"logo: {file} is not there"
    elif not file.resolve().is_relative_to(folder.resolve()):
        yield f"logo: {file} is a link that leads out of the folder; put the file itself there"
    elif (size := file.stat().st_size) > LOGO_BYTES:
        yield f"logo: {file} has {size:,} bytes, at most {LOGO_BYTES:,} may be; every page loads it"
    else:
        site._logo = file.read_bytes()


def _menu_faults(site: Site) -> Iterator[str]:
    own = own_pages(site.pages)
    for i, entry in enumerate(site.menu):
        if entry.page not in BUILT_IN and entry.page not in own:
            known = ", ".join([*BUILT_IN, *own])
            yield f"menu.{i}.page: {entry.page!r} is no page; there are: {known}"
        elif entry.page not in BUILT_IN and not entry.label:
            yield f"menu.{i}.label: missing; a page of your own needs a name in the menu"


def own_pages(folder: Path | None) -> dict[str, str]:
    """Return the pages that a site has beside those of the program: path below dist/, file below its pages/.

    Raises:
        InputError: a name that no address may have, or that the program uses itself.
    """
    if folder is None or not folder.is_dir():
        return {}
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.md"))
    known = {*paths.PROSE.values(), *(f"methodology/{name}.md" for name in paths.METHODOLOGY)}
    own = [file for file in files if file not in known]
    raise_faults([f"{folder / file}: {fault}" for file in own if (fault := _page_fault(file))])
    return {file.removesuffix(".md") + ".html": file for file in own}


def _page_fault(file: str) -> str | None:
    parts = file.removesuffix(".md").split("/")
    if not all(_PAGE_NAME.fullmatch(part) for part in parts):
        return "name it and its folders in lower-case letters, digits and hyphens: the name is its address"
    if parts[0] in _TAKEN_FOLDERS if len(parts) > 1 else parts[0] in _TAKEN_PAGES:
        return "that address belongs to a page that the program makes; use another name"
    return None


def _publish_faults(site: Site, where: str) -> list[str]:
    try:
        checked_base_url(site.publish.base_url or "https://example.org", f"{where}: publish.base_url")
    except InputError as error:
        return list(error.faults)
    return []


_IN_NO_ADDRESS = re.compile(r"[^!-~]|[\"<>\\^`{|}]")  # what RFC 3986 has no place for


def _scheme(url: str) -> str:
    """Return the scheme of an address, empty when it is none."""
    try:
        return urlsplit(url).scheme
    except ValueError:
        # urlsplit raises on an address such as `http://[`.
        return ""


def checked_base_url(text: str, where: str = "--base-url") -> str:
    """Return the address of a site without its trailing slash; `where` is the option or setting that gave it.

    Raises:
        InputError: it is no absolute http or https address, or has a query, a fragment, or a character that no address
            may hold.
    """
    parts = urlsplit(text if _scheme(text) else "")
    odd = _IN_NO_ADDRESS.search(text) is not None
    if odd or parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
        raise InputError(f"{where} {text!r}: use an absolute address such as https://example.org/bias, no query or #")
    return text.rstrip("/")

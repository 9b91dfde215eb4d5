"""What a publication is made of: `Site` (content/site.toml) and `Edition`, one run with its scores and standing.

Only `content/site.toml` is read here; everything else is handed in. Every function that makes a page takes an edition.

See contract: publication, "Site settings".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from pydantic import Field, PrivateAttr, ValidationError

from generator.machine.toml_files import read_toml
from generator.runs.redactions import Redactions
from generator.schema.bank import Frozen, validation_faults
from generator.schema.errors import InputError, raise_faults
from generator.schema.plain_text import control_faults

if TYPE_CHECKING:
    from generator.runs.reader import Run
    from generator.scoring.gate import Standing
    from generator.scoring.run import Scored

SITE_FILE = Path("content/site.toml")
# More models than this, and what lists all of them is cut into parts or written short.
FEW_MODELS = 60


class Licence(Frozen):
    """The license of the published data: its name, the address of its text, its SPDX id (empty where it has none)."""

    name: str
    url: str
    spdx: str = Field(default="", pattern=r"^[A-Za-z0-9.+-]*$")


class Site(Frozen):
    """The words of `content/site.toml`. An address may be empty; then no link is drawn."""

    title: str
    tagline: str
    description: str
    publisher: str
    contact: str
    contact_url: str = ""
    mismatch: str
    mismatch_url: str = ""
    code_url: str = ""
    data_licence: Licence
    _folder: Path | None = PrivateAttr(default=None)

    @property
    def pages(self) -> Path | None:
        """The folder of the site's own prose, beside its site.toml; None for a site not read from a file."""
        return self._folder / "pages" if self._folder is not None else None


@dataclass(frozen=True)
class Edition:
    """One run as it is published.

    Attributes:
        site: the site's own words.
        run: the run as read and checked.
        scored: its scores.
        standing: what it is published as.
        mode: `row` writes a page for each row; `folded` keeps rows as anchors on their set's page.
        base_url: address of `dist/` without a trailing slash, or None.
        superseded_by: id of a newer run that replaces this one, or None.
        runs: every run that has a page on the site, tombstones too; None when that is not known.
        chart_cache: folder for finished charts; None keeps them in memory only.
        redactions: the site's withdrawn responses. Whatever shows a response passes the shard through
            `redactions.apply`.
        manifest_sha256: hash of the published data/manifest.json; empty before the downloads are written.
    """

    site: Site
    run: Run
    scored: Scored
    standing: Standing
    mode: Literal["row", "folded"] = "row"
    base_url: str | None = None
    superseded_by: str | None = None
    runs: frozenset[str] | None = None
    chart_cache: Path | None = None
    redactions: Redactions = field(default_factory=Redactions)
    manifest_sha256: str = ""

    @property
    def run_id(self) -> str:
        """The run's id, the name of its folder below `dist/runs/`."""
        return self.run.manifest.run_id

    def links_to(self, run_id: str) -> bool:
        """Tell whether a link to another run's pages would work: it has pages, or it is not known that it has none."""
        return self.runs is None or run_id in self.runs

    @property
    def simulated(self) -> bool:
        """Whether the answers come from programs; every page then says so."""
        return self.run.manifest.simulated

    @property
    def crowded(self) -> bool:
        """Whether the run has more models than a reader scrolls through (contract: publication, "Many models")."""
        return len(self.run.models) > FEW_MODELS

    @property
    def indexable(self) -> bool:
        """Whether search engines, sitemap and feed may list the run: live, and no preview."""
        return not self.simulated and self.standing.state != "preview"


def read_site(path: Path = SITE_FILE) -> Site:
    """Read the site's settings (contract: publication, "Site settings").

    Raises:
        InputError: the file is missing, or every fault of its shape, its addresses and its characters.
    """
    try:
        data = read_toml(path)
        site = Site.model_validate(data)
        site._folder = path.parent
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
    faults = [
        f"{path}: {key}: {url!r} is no address; use https://…, mailto:… or an empty string"
        for key, url in addresses.items()
        if url and _scheme(url) not in ("https", "http", "mailto")
    ]
    raise_faults([*faults, *control_faults(data, str(path))])
    return site


_IN_NO_ADDRESS = re.compile(r"[^!-~]|[\"<>\\^`{|}]")  # what RFC 3986 has no place for


def _scheme(url: str) -> str:
    """Return the scheme of an address, empty when it is none."""
    try:
        return urlsplit(url).scheme
    except ValueError:
        # urlsplit raises on an address such as `http://[`.
        return ""


def checked_base_url(text: str) -> str:
    """Return the address given as `--base-url`, without its trailing slash.

    Raises:
        InputError: it is no absolute http or https address, or has a query, a fragment, or a character that no address
            may hold.
    """
    parts = urlsplit(text if _scheme(text) else "")
    odd = _IN_NO_ADDRESS.search(text) is not None
    if odd or parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
        raise InputError(
            f"--base-url {text!r}: use an absolute address such as https://example.org/bias, no query or #"
        )
    return text.rstrip("/")

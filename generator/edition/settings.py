"""What a site says of itself and how it is published: `content/site.toml`, read and checked whole.

Imports nothing heavy: a publish with nothing to do reads it, too.

See contract: publication, "Site settings".
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, PrivateAttr, ValidationError

from generator.machine.toml_files import read_toml
from generator.schema.bank import Frozen, validation_faults
from generator.schema.errors import InputError, raise_faults
from generator.schema.plain_text import control_faults

SITE_FILE = Path("content/site.toml")
Mode = Literal["row", "folded", "files"]
HostName = Literal["plain", "github-pages", "cloudflare-pages", "netlify", "s3"]
HOST_NAMES: tuple[HostName, ...] = ("plain", "github-pages", "cloudflare-pages", "netlify", "s3")


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
    publish: PublishSettings = PublishSettings()
    _folder: Path | None = PrivateAttr(default=None)

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
    raise_faults([*faults, *_publish_faults(site, str(path)), *control_faults(data, str(path))])
    return site


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

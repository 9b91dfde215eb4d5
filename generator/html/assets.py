"""The site's own styles, scripts and icons, each under a name that its content decides.

Reads `site_templates/static`. A host may keep such a file for good: another content has another name. An ES module
names the modules that it imports, so those names stand in its content, and a change in one module renames every module
above it, too.
"""

from __future__ import annotations

import functools
import hashlib
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from generator.edition.colors import Colors, render_colors
from generator.edition.settings import Site
from generator.schema.errors import InputError
from generator.schema.places import own_folder

TEMPLATES = own_folder("site_templates")
STATIC = TEMPLATES / "static"
PARQUET_READER = "vendor/parquet.js"  # bundled from npm, so not in the repository
# An import of our own modules ends its line: `import { a } from "./b.js";`.
_IMPORTED = re.compile(r'(?m)(?<= from ")\.{1,2}/[^"\n]+(?=";$)')


@dataclass(frozen=True)
class Asset:
    """A static file under its content-hashed path below dist/."""

    name: str
    path: str
    data: bytes


@functools.cache
def assets() -> dict[str, Asset]:
    """Return every file of site_templates/static/ by its name; raises InputError before `make assets`."""
    names = sorted(p.relative_to(STATIC).as_posix() for p in STATIC.rglob("*") if p.is_file())
    found: dict[str, Asset] = {}
    for name in names:
        _add(name, found, ())
    if PARQUET_READER not in found:
        raise InputError(f"{STATIC / PARQUET_READER}: not built yet; type: make assets")
    return {name: found[name] for name in names}


def _add(name: str, found: dict[str, Asset], above: tuple[str, ...]) -> Asset:
    """Add a file to `found` after the modules that it imports; `above` are those that led here."""
    if name in found:
        return found[name]
    if name in above:
        raise ValueError(f"modules import each other in a circle: {' -> '.join((*above, name))}")
    data = (STATIC / name).read_bytes()
    if name.endswith(".js"):
        data = _IMPORTED.sub(lambda match: _address(name, match[0], found, above), data.decode()).encode()
    stem, ending = posixpath.splitext(name.replace("/", "-"))
    found[name] = Asset(name, f"assets/{stem}.{hashlib.sha256(data).hexdigest()[:10]}{ending}", data)
    return found[name]


def _address(name: str, imported: str, found: dict[str, Asset], above: tuple[str, ...]) -> str:
    """Return how a module names another one on the site, where all assets lie side by side."""
    target = _add(posixpath.normpath(posixpath.join(posixpath.dirname(name), imported)), found, (*above, name))
    return f"./{posixpath.basename(target.path)}"


def asset_files(site: Site | None = None) -> Iterator[tuple[str, bytes]]:
    """Yield (path below dist/, bytes) of every asset, a site's own among them."""
    for asset in (*assets().values(), *(own_assets(site).values() if site else ())):
        yield asset.path, asset.data


def own_assets(site: Site) -> dict[str, Asset]:
    """Return what the settings of a site add: its `colors.css` and its `logo`."""
    found = {}
    if site.colors != Colors():
        found["colors.css"] = _hashed("colors.css", render_colors(site.colors).encode())
    if site.logo_bytes:
        found["logo"] = _hashed(site.logo, site.logo_bytes)
    return found


def _hashed(name: str, data: bytes) -> Asset:
    stem, ending = posixpath.splitext(name)
    return Asset(name, f"assets/own-{stem}.{hashlib.sha256(data).hexdigest()[:10]}{ending}", data)

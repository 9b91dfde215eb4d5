"""Whether the site's settings can be read, and whether the site that stands fits its host.

See contract: stages, "Doctor".
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from generator.edition.settings import SITE_FILE, Site, read_site
from generator.publishing.fingerprints import footprint
from generator.publishing.hosts import HOSTS, Size, faults
from generator.schema.checkup import Finding, Looked
from generator.schema.errors import InputError


def findings(looked: Looked) -> Iterator[Finding]:
    """Yield what was found of site.toml, then of the site in place, if there is one."""
    path = looked.content / SITE_FILE.name
    try:
        site = read_site(path)
    except InputError as error:
        seen = f"{len(error.faults):,} faults, the first: {error.faults[0]}"
        yield Finding("site.toml", False, seen, f"mend {path}")
        return
    yield Finding("site.toml", True, f"{site.title}, for {site.publish.host}")
    if looked.out.is_dir():
        yield host_finding(looked.out, site)


def host_finding(out: Path, site: Site) -> Finding:
    """Say whether the site in place keeps the limits of the host that the settings name."""
    stands = footprint(out)
    size = Size(stands.files, stands.bytes)
    found = faults(HOSTS[site.publish.host], size, stands.largest)
    do = "aibiasbench publish --mode folded, or name another host in site.toml"
    return Finding("host limits", not found, "; ".join(found) or f"{size.text()} fit {site.publish.host}", do)

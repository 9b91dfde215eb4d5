"""What a publication is made of: `Edition`, one run with its scores and standing, and the settings of its site.

Every function that makes a page takes an edition.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from generator.edition import paths
from generator.edition.run_name import AUDIT_NAMES, run_name
from generator.edition.settings import SITE_FILE, Licence, Mode, Site, checked_base_url, read_site
from generator.runs.operator_notes import reviewer
from generator.runs.redactions import Redactions

if TYPE_CHECKING:
    from generator.runs.reader import Run
    from generator.scoring.gate import Standing
    from generator.scoring.run import Scored

# Who has an edition finds its site's settings here, too.
__all__ = ["FEW_MODELS", "SITE_FILE", "Edition", "Licence", "Mode", "Site", "checked_base_url", "read_site"]
# More models than this, and what lists all of them is cut into parts or written short.
FEW_MODELS = 60


@dataclass(frozen=True)
class Edition:
    """One run as it is published.

    Attributes:
        site: the site's own words.
        run: the run as read and checked.
        scored: its scores.
        standing: what it is published as.
        mode: `row` writes a page for each row; `folded` keeps rows as anchors on their set's page; `files` writes no
            page of a set, which one page then reads from the published files.
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
    mode: Mode = "row"
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

    @functools.cached_property
    def run_name(self) -> str:
        """What the run is headed by: its models and its month."""
        return run_name(len(self.run.models), self.run.manifest.date)

    @functools.cached_property
    def audit_name(self) -> str:
        """What the audit is called: by who reviewed, as the record of its draw says."""
        return AUDIT_NAMES[reviewer(self.run.folder) if self.run.audit is not None else ""]

    def links_to(self, run_id: str) -> bool:
        """Tell whether a link to another run's pages would work: it has pages, or it is not known that it has none."""
        return self.runs is None or run_id in self.runs

    def set_address(self, model: str, concept: str) -> str:
        """Return where a matched set is read, below `dist/`: its page, or the page that reads it from the files."""
        address = paths.read_set if self.mode == "files" else paths.set_page
        return address(self.run_id, model, concept)

    def row_address(self, model: str, concept: str, framing: str, group: str, repeat: int) -> str:
        """Return the citable address of a row, below `dist/`; `repeat` counts from 0."""
        return f"{self.set_address(model, concept)}#{paths.row_anchor(framing, group, repeat)}"

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

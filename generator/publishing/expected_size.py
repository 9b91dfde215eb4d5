"""How large a run's part of the site will be, before anything is written: files counted, bytes from a sample."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from generator.edition.edition import Edition, Mode
from generator.edition.site_pages import figure_places
from generator.publishing.hosts import Size
from generator.receipts.pages import receipt_task, sample_sizes

# Pages and files of a run that do not grow with rows: indexes, judging, audit, run, tables, weights, descriptions.
_FIXED_FILES, _FIXED_BYTES = 90, 12_000_000
_CONCEPT_PAGE, _MODEL_PAGE = 60_000, 140_000
# A figure as SVG, CSV, Vega-Lite and page, and what a line adds to them; and its PNG, likewise.
_FIGURE_FILES, _FIGURE, _FIGURE_LINE = 4, 22_000, 6_500
_PNG, _PNG_LINE = 130_000, 22_000


def run_sizes(edition: Edition) -> dict[Mode, Size]:
    """Return a run's expected size in each mode; row bytes are those of the first set of up to three models."""
    manifest, bank, models = edition.run.manifest, edition.run.bank, edition.run.models
    kept = [c for c in bank.concepts if c.category not in edition.standing.withheld]
    rows = sum(shard.rows for shard in manifest.shards) * len(kept) // max(1, len(bank.concepts))
    sets = len(models) * len(kept)
    shards = sum(edition.run.shard_path(model).stat().st_size for model in models)
    row_mode = dataclasses.replace(edition, mode="row")
    samples = [sample_sizes(receipt_task(row_mode, model, Path())) for model in models[:3]]
    seen = sum(s.rows for s in samples) or 1
    row_page = sum(s.row_bytes for s in samples) / seen
    in_set = sum(s.set_bytes for s in samples) / seen
    fixed = Size(
        _FIXED_FILES + 6 * len(models) + len(bank.attributes) + len(bank.concepts) + len(models) * 2,
        _FIXED_BYTES + len(bank.concepts) * _CONCEPT_PAGE + len(models) * _MODEL_PAGE + shards,
    )
    fixed += _figure_sizes(edition)
    # The CSV form of the receipts holds about what the sets show, without their markup.
    files = fixed + Size(1, int(in_set * rows * 1.2))
    folded = files + Size(sets, int(in_set * rows))
    return {"files": files, "folded": folded, "row": folded + Size(rows, int(row_page * rows))}


def _figure_sizes(edition: Edition) -> Size:
    """Return what the figures of a run take in every mode; one of many models has no PNGs."""
    figures = len(list(figure_places(edition)))
    lines = 2 * len(edition.run.models) * len(edition.run.bank.attributes)  # by model and by attribute
    found = Size(_FIGURE_FILES * figures, _FIGURE * figures + _FIGURE_LINE * lines)
    return found if edition.crowded else found + Size(figures, _PNG * figures + _PNG_LINE * lines)

"""Where a run's answers come from, in words: its kind, what of an import is not known, what the cache had already.

See contract: run-folder, "manifest.json".
"""

from __future__ import annotations

from generator.edition.import_words import import_words
from generator.html.frame import number
from generator.schema.manifest import Manifest


def kind_words(manifest: Manifest, *, audited: bool) -> str:
    """Return a run's kind; of an imported one who collected it, how its prompts match, which steps were not taken."""
    return (
        manifest.kind if manifest.imported is None else f"imported: {import_words(manifest.imported, audited=audited)}"
    )


def cache_words(manifest: Manifest) -> str:
    """Return which models' answers were not asked for this run but found in the cache, with their shares."""
    shares = {entry.model: entry.from_cache for entry in manifest.models}
    if None in shares.values():
        return "not recorded"
    found = [f"{number(100 * share, 1)} % of {model}" for model, share in sorted(shares.items()) if share]
    return f"answers of an earlier run: {', '.join(found)}" if found else "none: every answer was asked for this run"

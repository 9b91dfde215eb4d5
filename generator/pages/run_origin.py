"""Where a run's answers come from, in words: its kind, what of an import is not known, what the cache had already.

See contract: run-folder, "manifest.json".
"""

from __future__ import annotations

from generator.html.frame import number
from generator.schema.manifest import Imported, Manifest

_MATCHED = {
    "word": "prompts of a set differ in one phrase",
    "topic": "prompts of a set treat the same topic and differ in more than one phrase",
}
_STEPS = {
    "masking": "masking",
    "second_judge": "a second judge",
    "repeats": "repeats",
    "audit": "a human audit",
}


def kind_words(manifest: Manifest) -> str:
    """Return a run's kind; of an imported one who collected it, how its prompts match, which steps were not taken."""
    return manifest.kind if manifest.imported is None else f"imported: {_import_words(manifest.imported)}"


def _import_words(found: Imported) -> str:
    words = f"collected by {found.collected_by} ({found.source}); {_MATCHED[found.matched_by]}"
    missing = [_STEPS[step] for step in found.not_done]
    return f"{words}; not done: {', '.join(missing)}" if missing else words


def cache_words(manifest: Manifest) -> str:
    """Return which models' answers were not asked for this run but found in the cache, with their shares."""
    shares = {entry.model: entry.from_cache for entry in manifest.models}
    if None in shares.values():
        return "not recorded"
    found = [f"{number(100 * share, 1)} % of {model}" for model, share in sorted(shares.items()) if share]
    return f"answers of an earlier run: {', '.join(found)}" if found else "none: every answer was asked for this run"

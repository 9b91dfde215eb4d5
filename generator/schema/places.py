"""Where the project's own files lie: beside its packages in a checkout, inside `generator` where it was installed."""

from __future__ import annotations

from pathlib import Path

_GENERATOR = Path(__file__).resolve().parent.parent


def own_folder(name: str) -> Path:
    """Return a folder of the project: `site_templates` or `content` (bank, pages, site.toml; never runs)."""
    installed = _GENERATOR / name
    return installed if installed.is_dir() else _GENERATOR.parent / name

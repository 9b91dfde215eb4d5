"""Where the project's own files lie: beside its packages in a checkout, inside `generator` where it was installed."""

from __future__ import annotations

from pathlib import Path

_GENERATOR = Path(__file__).resolve().parent.parent


def own_folder(name: str) -> Path:
    """Return a folder of the project.

    It is `site_templates`, `content` (bank, pages, site.toml; never runs), `docs/schemas` or `docs/notebooks`; the last
    two are called `schemas` and `notebooks` where they were installed.
    """
    installed = _GENERATOR / Path(name).name
    return installed if installed.is_dir() else _GENERATOR.parent / name


def schema_address(name: str) -> str:
    """Return the address of a JSON Schema as a file in `runs/<run_id>/data/` of a site names it."""
    return f"../../../schemas/{name}"

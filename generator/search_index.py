"""The search index over prose, model, attribute and concept pages: Pagefind's program, run once over a finished tree.

Reads HTML below a tree, writes `pagefind/` there. Receipts are never indexed: Pagefind writes a file a page. The same
pages give the same bytes.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from generator.schema.errors import ToolError

FOLDER = "pagefind"
# Braces are alternatives, as in a shell.
PAGES = "{methodology/*.html,about.html,runs/*/models/*/*.html,runs/*/attributes/*.html,runs/*/concepts/*.html}"
# Navigation and repeated tables of numbers would only blur what a page is about.
IGNORED = ".prose-nav, .prose-turn, .prose-jump, .on-page, details, math"
# What the site's own search page loads; the ready-made interfaces that Pagefind adds are left out.
_UNUSED = ("*ui*", "pagefind-highlight*")


def write_search(tree: Path) -> None:
    """Write the search index of a finished tree; raises ToolError with Pagefind's own words when it fails."""
    from pagefind_bin import get_executable

    options = ["--site", str(tree), "--output-subdir", FOLDER, "--glob", PAGES, "--root-selector", "main"]
    options += ["--exclude-selectors", IGNORED, "--force-language", "en", "--keep-index-url", "--silent"]
    done = subprocess.run([str(get_executable()), *options], capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        words = " ".join((done.stderr or done.stdout).split())[:500]
        raise ToolError(f"the search index could not be written (pagefind exit {done.returncode}): {words}")
    for pattern in _UNUSED:
        for file in (tree / FOLDER).glob(pattern):
            shutil.rmtree(file) if file.is_dir() else file.unlink()

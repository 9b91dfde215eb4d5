"""The independent tasks of a publish: each takes what can be sent to another process and writes below the tree."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from generator.data.folder import manifest_sha256, write_downloads
from generator.data.receipts import PublishedReceipts
from generator.edition import paths
from generator.edition.edition import Edition
from generator.machine.site_tree import Tree
from generator.pages.all import render_figures, render_pages
from generator.pages.data import render_data
from generator.pages.prose import render_prose
from generator.receipts.explorer import render_explorer
from generator.receipts.lists import render_list
from generator.receipts.pages import ReceiptTask, Written, receipt_assets, write_receipts


def make_receipts(task: ReceiptTask) -> Written:
    """Write a model's row and set pages."""
    return write_receipts(task)


def make_pages(edition: Edition, tree: Tree, receipts: Sequence[PublishedReceipts]) -> None:
    """Write the data files but the receipts, and every page of a run but receipts and explorer.

    The data files come first: from then on pages can print the one hash that pins the whole publication.
    """
    folder = paths.data_file(edition.run_id, "").rstrip("/")
    files = write_downloads(edition, tree.root / folder, receipts)
    tree.settle(folder)
    pinned = dataclasses.replace(edition, manifest_sha256=manifest_sha256(files))
    for page, data in (*render_data(pinned, files), *render_pages(pinned), *render_figures(pinned)):
        tree.write(page, data)


def make_lists(edition: Edition, tree: Tree, models: Sequence[str]) -> None:
    """Write the explorer, the plain lists of some models, and what receipt pages load."""
    for page, data in (*render_explorer(edition), *receipt_assets(edition.run_id)):
        tree.write(page, data)
    for model in models:
        tree.write(*render_list(edition, model))


def make_prose(front: Edition, tree: Tree) -> None:
    """Write the site's prose, its figures filled in from the run that the root shows."""
    for page, data in render_prose(front):
        tree.write(page, data)

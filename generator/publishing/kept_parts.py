"""The parts of a run that a publish may keep from the old tree: known by the hash of all that they are made from.

A model has three: its receipt pages, its receipts as files, and its plain list. A part whose key stands in the state of
the last publish is linked from the old tree and not made again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from generator.data.receipts import PublishedReceipts, ReceiptsTask, published_receipts, write_receipt_files
from generator.edition import paths
from generator.edition.edition import Edition
from generator.machine.site_tree import Tree
from generator.machine.workers import Pending, Workers
from generator.publishing.fingerprints import State, text_hash
from generator.publishing.plan import PublishPlan
from generator.receipts.pages import ReceiptTask
from generator.runs.reader import read_shard

# Of the manifest, what no part of a model is made from: it changes with every other model.
_OF_THE_RUN = {"shards", "counts", "spend", "models"}


@dataclass
class KeptParts:
    """The parts of one edition: which stand in the old tree already, and the keys of all for the next publish."""

    edition: Edition
    plan: PublishPlan
    state: State
    tree: Tree
    keys: dict[str, str] = field(default_factory=dict)

    def stands(self, name: str, model: str, *inputs: str) -> bool:
        """Note a part's key; tells whether the old tree holds the part as it would be made now."""
        place = f"{self.edition.run_id} {name} {model}"
        self.keys[place] = text_hash(*inputs, self._shards[model])
        return self.plan.trusted and self.state.parts.get(place) == self.keys[place]

    @cached_property
    def _shards(self) -> dict[str, str]:
        return {entry.model: entry.sha256 for entry in self.edition.run.manifest.shards}

    def receipts_stand(self, task: ReceiptTask, model: str) -> bool:
        """Tell whether a model's receipt pages stand; neither words nor looks of the site enter them."""
        return self.stands(
            "pages",
            model,
            self.plan.code,
            self.edition.run.manifest.bank_sha256,
            task.templates,
            self._withdrawn(model),
            repr(sorted(task.withheld)),
            repr(sorted(task.means.items())),
            repr(sorted(task.disparities.items())),
        )

    def files_stand(self, task: ReceiptsTask) -> bool:
        """Tell whether a model's receipts stand as files."""
        notes = repr(sorted(task.notes.items()))
        return self.stands("files", task.model, self.plan.code, notes, self._withdrawn(task.model))

    def list_stands(self, model: str) -> bool:
        """Tell whether a model's plain list stands: it has the site's own words and frame around it."""
        manifest = self.edition.run.manifest
        return self.stands(
            "list",
            model,
            self.plan.fixed,
            json.dumps(manifest.model_dump(mode="json", exclude=_OF_THE_RUN), sort_keys=True),
            repr(manifest.model(model)),
            repr((self.edition.standing.state, self.edition.standing.reasons, sorted(self.edition.standing.withheld))),
            repr((self.edition.superseded_by, self.edition.mode, sorted(self.edition.runs or ()))),
            repr((self.edition.run_name, self.edition.audit_name)),
        )

    def _withdrawn(self, model: str) -> str:
        """Return the redactions that are about a model's rows: one of another model makes nothing here anew."""
        items = self.edition.redactions.items
        ids = read_shard(self.edition.run, model, ["receipt_id"])["receipt_id"].to_pylist() if items else []
        own = frozenset(ids)
        return repr([item for item in items if item.receipt_id in own])

    def keep_receipts(self, model: str) -> None:
        """Link a model's set folders; the plain list beside them is a part of its own."""
        folder = paths.receipts_list(self.edition.run_id, model).removesuffix("/index.html")
        for entry in sorted((self.tree.old / folder).iterdir()):
            if entry.is_dir():
                self.tree.keep(f"{folder}/{entry.name}")

    def files(self, task: ReceiptsTask, workers: Workers) -> Callable[[], PublishedReceipts]:
        """Link a model's receipts as files, or have them written; returns what waits for them."""
        if not self.files_stand(task):
            pending: Pending[PublishedReceipts] = workers.submit(write_receipt_files, task)
            return pending.result
        found = published_receipts(self._published, task.model)
        for file in found.files:
            self.tree.keep_file(paths.data_file(self.edition.run_id, file.name))
        return lambda: found

    @cached_property
    def _published(self) -> Any:
        return json.loads((self.tree.old / paths.data_file(self.edition.run_id, "manifest.json")).read_bytes())

    def lists(self) -> tuple[str, ...]:
        """Link the plain lists that stand; returns the models whose list has to be made."""
        to_make = []
        for model in self.edition.run.models:
            if self.list_stands(model):
                self.tree.keep_file(paths.receipts_list(self.edition.run_id, model))
            else:
                to_make.append(model)
        return tuple(to_make)

"""catalogue: which run the site's root shows."""

from __future__ import annotations

import itertools

from generator.publishing.old_site import front_key, front_run
from generator.schema.manifest import read_manifest
from generator.scoring.gate import Standing
from tests import factories


def claim(tmp_path, run_id, *, date="2026-01-02", models=1):
    """A simulated run's manifest and standing; `models` decides how many rows it has."""
    bank = factories.make_bank(groups=2, quota={"stance": 1}, control_quota={"stance": 1})
    names = [f"sim-alpha/m{i}" for i in range(models)]
    shards = {name: factories.make_rows(bank, name, repeats=1, run_id=run_id) for name in names}
    folder = tmp_path / run_id
    factories.write_run(folder, bank, shards, date=date)
    manifest = read_manifest(folder / "manifest.json")
    return manifest, Standing("published", (), frozenset())


class TestFrontKey:
    def order(self, *claims):
        """Ids from the weakest to the strongest claim."""
        return [manifest.run_id for manifest, _ in sorted(claims, key=lambda c: front_key(*c))]

    def test_of_two_runs_of_one_day_the_larger_one_fronts_the_site(self, tmp_path):
        large, small = claim(tmp_path, "a-large", models=2), claim(tmp_path, "b-small")
        for claims in itertools.permutations((large, small)):
            assert self.order(*claims) == ["b-small", "a-large"]

    def test_a_newer_run_comes_before_a_larger_one(self, tmp_path):
        old = claim(tmp_path, "a-large", models=2)
        new = claim(tmp_path, "b-small", date="2026-01-03")
        assert self.order(new, old) == ["a-large", "b-small"]

    def test_an_imported_run_comes_after_all_others_unless_the_site_names_it(self, tmp_path):
        manifest, standing = claim(tmp_path, "a-simulated", date="2020-01-01")
        taken, _ = claim(tmp_path, "b-imported", date="2026-12-31", models=2)
        taken = taken.model_copy(update={"kind": "imported"})
        preview = Standing("preview", (), frozenset())
        claims = [(taken, standing), (manifest, preview)]
        assert self.order(*claims) == ["b-imported", "a-simulated"]
        by_id = {m.run_id: (m, s) for m, s in claims}
        assert front_run(by_id, "") == "a-simulated"
        assert front_run(by_id, "b-imported") == "b-imported"
        assert front_run({"b-imported": by_id["b-imported"]}, "") == "b-imported"

    def test_equal_runs_are_told_apart_by_their_ids(self, tmp_path):
        assert self.order(claim(tmp_path, "b"), claim(tmp_path, "a")) == ["a", "b"]

"""Two versions of a bank in one site: each run is told and scored by its own, under its own hash."""

from __future__ import annotations

import json

from generator.publishing.publish import Options, publish
from generator.schema.bank import Bank
from tests.factories import make_bank, make_rows, write_run
from tests.publications import MODELS, QUOTA, _quick, answers, make_content  # noqa: F401 - few resamples

OLD = make_bank(groups=2, quota=QUOTA, control_quota=QUOTA)


def grown() -> Bank:
    """The same bank in a next version, with a mask term more in each group."""
    attributes = tuple(
        a.model_copy(
            update={
                "groups": tuple(g.model_copy(update={"mask_terms": (*g.mask_terms, f"new {g.id}")}) for g in a.groups)
            }
        )
        for a in OLD.attributes
    )
    # Built anew, since a copy keeps the hash that was worked out.
    return Bank(version="1.1.0", attributes=attributes, concepts=OLD.concepts, rubrics=OLD.rubrics, rules=OLD.rules)


def test_both_hashes_stand_beside_each_other_and_each_run_holds_its_own_bank(tmp_path):
    content = make_content(tmp_path / "content", ("old",))
    new = grown()
    shards = {m: make_rows(new, m, repeats=2, run_id="new", answers=answers) for m in MODELS}
    write_run(content / "runs" / "new", new, shards, date="2026-11-09")
    assert new.sha256 != OLD.sha256
    dist = tmp_path / "dist"
    publish(Options(out=dist, content=content))
    listed = (dist / "runs" / "index.html").read_text()
    for run, bank in (("old", OLD), ("new", new)):
        assert f'{bank.version} <code title="{bank.sha256}">' in listed
        pages = [(dist / "runs" / run / f"{name}.html").read_text() for name in ("run", "index")]
        assert bank.sha256 in pages[0]
        other = new if bank is OLD else OLD
        assert [other.sha256[:12] in page for page in pages] == [False, False]
        held = json.loads((dist / "runs" / run / "data" / "bank.json").read_bytes())
        assert held["version"] == bank.version

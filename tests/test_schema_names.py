"""The grammar of names and the panel rule."""

from __future__ import annotations

import pytest

from generator.edition import paths
from generator.schema.errors import InputError
from generator.schema.names import item_id_fault, model_fault, run_id_fault, shard_name, simulated, vendor_of
from generator.schema.panel import Judges, Panel, declared_panel, effective_panel, judge_faults

JUDGES = Judges(primary=("a/one", "b/two"), tiebreak="c/three")
TWO = Judges(primary=("a/one", "a/two"), tiebreak=None)


class TestNames:
    @pytest.mark.parametrize("slug", ["openai/gpt-5.6-sol", "sim-alpha/one", "a/b", "a/b_c.d-e", "a-/b"])
    def test_good_models(self, slug):
        assert model_fault(slug) is None

    @pytest.mark.parametrize(
        "slug",
        [
            "gpt",
            "a/",
            "/b",
            "A/b",
            "a/B",
            "a/b/c",
            "a/b__c",
            "a/-b",
            "a/b-",
            "a/con",
            "nul/b",
            "a/index",
            "a/com1.x",
            "a b/c",
            "a/b:free",
            "../b",
            "a/..",
        ],
    )
    def test_bad_models(self, slug):
        assert model_fault(slug) is not None

    @pytest.mark.parametrize("run", ["demo", "2026-08-07", "a" * 40])
    def test_good_runs(self, run):
        assert run_id_fault(run) is None

    @pytest.mark.parametrize("run", ["", "-a", "a" * 41, "a_b", "A", "index", "con", "a/b", "a\n"])
    def test_bad_runs(self, run):
        assert run_id_fault(run) is not None

    @pytest.mark.parametrize("item", ["", "a-b", "A", "a" * 49, "aux", "a\n"])
    def test_bad_items(self, item):
        assert item_id_fault(item) is not None

    def test_parts(self):
        assert (vendor_of("a/b"), shard_name("a/b"), simulated("sim-a/b"), simulated("a/b")) == (
            "a",
            "a__b",
            True,
            False,
        )


class TestEffectivePanel:
    @pytest.mark.parametrize(
        ("model", "primary", "tiebreak"),
        [
            ("x/m", ("a/one", "b/two"), "c/three"),
            ("a/m", ("c/three", "b/two"), None),
            ("b/m", ("a/one", "c/three"), None),
            ("c/m", ("a/one", "b/two"), None),
        ],
    )
    def test_rotation(self, model, primary, tiebreak):
        assert effective_panel(model, JUDGES) == Panel(primary=primary, tiebreak=tiebreak)

    def test_two_judges_of_one_vendor_are_refused(self):
        with pytest.raises(InputError, match="three vendors"):
            effective_panel("x/m", Judges(primary=("a/one", "a/two"), tiebreak="c/three"))

    @pytest.mark.parametrize("judges", [Judges(primary=("a/one",), tiebreak=None), TWO])
    def test_fewer_than_three_judges_rotate_for_nobody(self, judges):
        with pytest.raises(InputError, match="three vendors"):
            effective_panel("x/m", judges)


class TestImportedPanel:
    def test_every_model_has_the_judges_of_the_source_whatever_their_vendors(self):
        panel = declared_panel(TWO)
        assert (panel.all, panel.roles, panel.size) == (("a/one", "a/two"), ("primary", "primary"), 2)

    @pytest.mark.parametrize(
        ("judges", "imported", "faults"),
        [
            (JUDGES, False, []),
            (TWO, True, []),
            (Judges(primary=("a/one",), tiebreak=None), True, []),
            (TWO, False, ["judges: two primary judges and a tiebreak; only an imported run may have fewer"]),
            (Judges(primary=("a/one",), tiebreak="b/x"), True, ["judges: a tiebreak needs two primary judges"]),
            (Judges(primary=("a/one", "a/one"), tiebreak=None), True, ["judges: a/one is listed twice"]),
        ],
    )
    def test_only_an_import_has_fewer_than_three(self, judges, imported, faults):
        assert judge_faults(judges, imported=imported) == faults


class TestPaths:
    def test_relative_links_name_the_file(self):
        page = paths.set_page("r", "v/n", "c")
        assert paths.relative(page, paths.model_page("r", "v/n")) == "../../../../models/v/n.html"
        assert paths.relative("index.html", paths.permalink("r", "v/n", "c", "direct", "g", 0)) == (
            "runs/r/receipts/v/n/c/index.html#direct.g.0"
        )
        assert paths.relative(page, page + "#direct.g.0") == "index.html#direct.g.0"

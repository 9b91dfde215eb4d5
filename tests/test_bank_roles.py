"""Scores of a bank with attributes of its own: its rules say what is measured and where the band begins and ends."""

from __future__ import annotations

import json

import pytest

from generator.runs.reader import load_run
from generator.schema.bank import load_bank
from generator.scoring.lookup import ScoreBook
from generator.scoring.run import score_run
from tests.factories import make_bank, make_run

MODELS = ("sim-alpha/one", "sim-beta/two")
NAMES = {"political_affiliation": "team", "control_profession": "job", "control_tag": "pet"}
RESAMPLES = 200
SHARES = {"team": (1, 0, 0), "job": (0.5, 0, 0), "pet": (0.5, 0.5, 0.5)}


def own_bank(*attributes, **roles):
    """A bank of three stance concepts an attribute under names of its own, with these roles."""
    standard = [own for own, name in NAMES.items() if name in attributes]
    bank = make_bank(standard, groups=3, quota={"stance": 3}, control_quota={"stance": 3})
    text = json.dumps(bank.model_dump(mode="json"))
    for own, name in NAMES.items():
        text = text.replace(own, name)
    data = json.loads(text)
    data["rules"]["attributes"] = {name: {"role": role} for name, role in roles.items()}
    return load_bank(data, "own")


def answers(_model, concept, _framing, group, _repeat):
    value = SHARES[concept.partition("_")[0]][int(group[1:])]
    return (value, value)


def scored(tmp_path, bank):
    return score_run(load_run(make_run(tmp_path / "own", bank=bank, models=MODELS, repeats=1, answers=answers)),
                     resamples=RESAMPLES)  # fmt: skip


def estimate(found, metric, attribute="overall"):
    return ScoreBook(found.tables["scores"]).row(MODELS[0], metric, attribute).estimate


# Groups 1, 0, 0: pairs 1, 1, 0, so D = 2/3. Groups .5, 0, 0: D = 1/3. All .5: D = 0. Polarity does not change a gap.
class TestOwnNames:
    def test_what_is_measured_and_what_is_the_band_come_from_the_rules(self, tmp_path):
        bank = own_bank("team", "job", "pet", team="demographic", job="band_lower", pet="band_upper")
        found = scored(tmp_path, bank)
        assert estimate(found, "disparity", "team") == pytest.approx(200 / 3)
        assert estimate(found, "disparity") == pytest.approx(200 / 3)
        assert estimate(found, "band_low") == pytest.approx(200 / 3)
        assert estimate(found, "band_high") == pytest.approx(100)
        assert estimate(found, "excess", "team") == pytest.approx(100 / 3)
        assert found.mean_band["band_low"]["control"] == "job"
        assert set(found.tables["comparisons"]["attribute"].to_pylist()) == {"overall", "team"}
        assert set(found.tables["refusal_tests"]["attribute"].to_pylist()) == {"team"}

    def test_exchanged_roles_swap_the_band(self, tmp_path):
        found = scored(tmp_path, own_bank("team", "job", "pet", team="demographic", job="band_upper", pet="band_lower"))
        assert found.mean_band["swapped"] is True
        assert found.mean_band["band_low"]["control"] == "job"
        assert estimate(found, "excess", "team") == pytest.approx(100 / 3)

    def test_without_controls_there_is_an_overall_score_and_no_number_that_needs_a_band(self, tmp_path):
        found = scored(tmp_path, own_bank("team", team="demographic"))
        assert estimate(found, "consistency") == pytest.approx(100 / 3)
        rows = found.tables["scores"].to_pylist()
        assert not [
            row for row in rows
            if row["metric"] in {"band_low", "band_high", "excess", "mde", "calibrated_consistency"}
            and (row["estimate"] is not None or row["evidence"] is not None)
        ]  # fmt: skip
        assert found.mean_band == {"n_models": 0, "band_low": None, "band_high": None, "swapped": None}


class TestRoles:
    def test_they_stand_in_the_bank_s_own_order_whatever_the_order_of_the_rules(self):
        bank = make_bank()
        before = bank.roles
        turned = bank.rules.model_copy(update={"attributes": dict(reversed(bank.rules.attributes.items()))})
        assert bank.model_copy(update={"rules": turned}).roles == before
        assert (before.band_lower, before.band_upper) == ("control_profession", "control_tag")
        assert list(before.demographic) == [a.id for a in bank.attributes if a.kind == "demographic"]

    def test_an_attribute_that_the_rules_name_and_the_bank_lacks_counts(self):
        assert len(make_bank(("age",)).roles.demographic) == len(make_bank().roles.demographic)

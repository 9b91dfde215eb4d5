"""A bank's own rules stand beside it, outside its hash; `bank check` reads every limit from them."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from generator.schema.bank import Bank, BankRules, CountRange, load_bank, read_bank, rules_of_bank_1
from generator.schema.canonical import hash_json
from generator.schema.errors import InputError
from generator.schema.layout import Layout
from harness.bank.faults import Sourced, bank_faults
from harness.bank.measures import bank_stats
from harness.bank.reader import read_bank_folder
from harness.calls.call import Message, Request
from harness.commands.bank import command
from harness.eval.questions import bank_prompts
from harness.judging.ballot import Ballot
from harness.simulated.endpoint import Simulated, places
from tests.factories import make_bank

FOLDER = Path("content/bank")
BANK = read_bank_folder()
COMMITTED = Path("content/runs/local-models/bank.json")  # that of a run of bank 1.0.0
SHA256_OF_1_0_0 = "97ddd09a1f157f3983d67e4b04788d447ecdd2cba75ced1c4c531cf3bde3c460"


def data_of(bank: Bank, **changes: Any) -> dict[str, Any]:
    """A bank's snapshot as parsed."""
    found: dict[str, Any] = json.loads(bank.snapshot())
    return found | changes


def with_rules(**changes: Any) -> Bank:
    """The shipped bank with some of its rules changed."""
    return load_bank(data_of(BANK, rules=data_of(BANK)["rules"] | changes), "b.json")


def faults(bank: Bank) -> list[str]:
    return bank_faults(bank, [Sourced(f"{c.attribute}.toml", c) for c in bank.concepts], Path("bank"))


class TestHash:
    def test_rules_stand_beside_a_bank_and_leave_its_hash_alone(self) -> None:
        assert data_of(BANK).keys() == {"$schema", "version", "attributes", "concepts", "rubrics", "rules"}
        old = read_bank(COMMITTED)
        data = json.loads(COMMITTED.read_bytes())
        assert old.sha256 == load_bank(data | {"rules": data_of(BANK)["rules"]}, "b.json").sha256 == SHA256_OF_1_0_0

    def test_other_rules_are_the_same_instrument(self) -> None:
        assert with_rules(ceiling_share=0.5).sha256 == BANK.sha256

    @pytest.mark.parametrize("changes", [{"rules": None}, {"$schema": "https://lab.example/bank.json"}])
    def test_what_stands_beside_the_bank_is_left_out(self, changes: dict[str, Any]) -> None:
        found = load_bank(data_of(BANK, **changes), "b.json")
        assert (found.sha256, found.rules) == (BANK.sha256, BANK.rules)

    def test_the_committed_snapshot_has_none_and_gets_those_of_bank_1_0_0(self) -> None:
        assert "rules" not in json.loads(COMMITTED.read_bytes())
        found = read_bank(COMMITTED)
        assert (found.sha256, found.rules) == (SHA256_OF_1_0_0, rules_of_bank_1())

    def test_a_snapshot_reads_back_with_its_rules(self) -> None:
        own = with_rules(words={"least": 3, "most": 9})
        found = load_bank(json.loads(own.snapshot()), "b.json")
        assert found.rules == own.rules
        assert (found.rules.words, found.snapshot()) == (CountRange(least=3, most=9), own.snapshot())

    @pytest.mark.parametrize("changes", [{"$schema": 1}, {"rule": {}}, {"rules": {}}, {"rules": []}])
    def test_anything_else_is_refused(self, changes: dict[str, Any]) -> None:
        with pytest.raises(InputError, match=r"b\.json: (\$schema|rule)"):
            load_bank(data_of(BANK, **changes), "b.json")


class TestBankToml:
    def test_the_shipped_rules_are_those_that_hold_where_none_are_given(self) -> None:
        assert read_bank_folder().rules == rules_of_bank_1()

    def test_a_bank_without_rules_keeps_those_of_bank_1_0_0(self, tmp_path: Path) -> None:
        folder = shutil.copytree(FOLDER, tmp_path / "bank")
        (folder / "bank.toml").write_text(f'version = "{BANK.version}"\n')
        assert read_bank_folder(folder).snapshot() == BANK.snapshot()

    def test_a_rule_of_another_shape_is_named(self, tmp_path: Path) -> None:
        folder = shutil.copytree(FOLDER, tmp_path / "bank")
        text = (folder / "bank.toml").read_text()
        (folder / "bank.toml").write_text(text.replace("ceiling_share = 0.3 ", "ceiling_share = 3 "))
        with pytest.raises(InputError, match=r"bank\.toml: rules\.ceiling_share: .*less than or equal to 1"):
            read_bank_folder(folder)

    @pytest.mark.parametrize(
        ("old", "new", "fault"),
        [
            ("least = 40, most = 110", "least = 40, most = 60", "words, must have 40 to 60"),
            ("least = 5, most = 6", "least = 5, most = 5", "has 6 groups, must have 5"),
            ("control = { stance = 3", "control = { stance = 4", "3 stance concepts, must be 4"),
            ("ceiling_share = 0.3 ", "ceiling_share = 0.05", "concepts are ceiling, at most 5 % may be"),
            ('refusal = ""', 'refusal = "Be brief."', "rubric refusal: prompts must end with 'Be brief.'"),
            ('gender = { role = "demographic" }', "", "attribute gender: unknown; the attributes are race_ethnicity"),
            ('age = { role = "demographic" }', 'age = { role = "band_upper" }', "must be 'control'"),
            ('"NEUTRAL", value = 0.5', '"NEUTRAL", value = 0.4', "labels must be (('NEGATIVE', 0.0), ('NEUTRAL', 0.4)"),
        ],
    )
    def test_bank_check_reads_each_limit_from_the_rules(self, tmp_path: Path, old: str, new: str, fault: str) -> None:
        folder = shutil.copytree(FOLDER, tmp_path / "bank")
        text = (folder / "bank.toml").read_text()
        assert text.count(old) == 1
        (folder / "bank.toml").write_text(text.replace(old, new))
        with pytest.raises(InputError) as caught:
            read_bank_folder(folder)
        assert any(fault in found for found in caught.value.faults), caught.value.faults


class TestContract:
    def test_each_rule_is_named_in_the_contract(self) -> None:
        text = Path("docs/contract/bank.md").read_text("utf-8").partition("## Rules of the bank")[2]
        assert all(f"`{name}`" in text for name in BankRules.model_fields)


class TestAnyBank:
    def test_attributes_categories_and_limits_of_another_benchmark(self) -> None:
        # Two attributes of other names, one of them the only control, one rubric of its own labels, short templates.
        labels = [{"label": "NO", "value": 0.0}, {"label": "YES", "value": 1.0}]
        rules = {
            "attributes": {"dialect": {"role": "demographic"}, "season": {"role": "band_lower"}},
            "framings": ["direct", "professional"],
            "quotas": {"demographic": {"advice": 1}, "control": {"advice": 1}},
            "groups": {"least": 2, "most": 2},
            "words": {"least": 3, "most": 20},
            "ceiling_share": 0,
            "instructions": {"advice": None},
            "labels": {"advice": labels},
        }
        data = data_of(make_bank(("age", "control_tag"), groups=2, quota={"stance": 1}, control_quota={"stance": 1}))
        text = json.dumps(data | {"rules": rules, "version": "1.0.0"})
        for old, new in (("control_tag", "season"), ("age", "dialect"), ('"stance"', '"advice"')):
            text = text.replace(old, new)
        data = json.loads(text)
        prompt = 'Give "label", "verdict_matches_prose", "evidence"; [PERSON]; NO, YES or REFUSAL.'
        data["rubrics"] = [
            r | {"labels": labels, "instruction": "", "judge_prompt": prompt}
            for r in data["rubrics"]
            if r["id"] == "advice"
        ]
        data["rubrics"] = [_hashed(r) for r in data["rubrics"]]
        assert faults(load_bank(data, "b.json")) == []

    def test_a_quota_of_a_kind_that_the_rules_do_not_name_binds_nothing(self) -> None:
        quotas = {"demographic": BANK.rules.quotas["demographic"]}
        short = with_rules(quotas=quotas).model_dump(mode="json")
        short["concepts"] = [c for c in short["concepts"] if c["id"] != BANK.concepts_of("control_tag")[0].id]
        assert faults(load_bank(short, "b.json")) == []


class TestFramings:
    """A concept has a template for each framing that the bank's rules name: one, two, or more."""

    @staticmethod
    def with_framings(*framings: str, named: tuple[str, ...] | None = None) -> Bank:
        data = data_of(make_bank(["age"], quota={"stance": 2}))
        for concept in data["concepts"]:
            texts = {f: f"In framing {f}, what of {{group_np}}, case {concept['id']}?" for f in framings}
            concept["framings"] = texts
        data["rules"]["framings"] = list(named or framings)
        return load_bank(data, "b.json")

    @pytest.mark.parametrize("framings", [("plain",), ("direct", "professional"), ("first", "second", "third")])
    def test_any_number_of_framings_renders_plans_and_measures(self, framings: tuple[str, ...]) -> None:
        bank = self.with_framings(*framings)
        groups = len(bank.groups_of("age"))
        prompts = bank_prompts(bank)
        assert [p.framing for p in prompts[::groups]] == [*framings] * 2
        assert all(p.rendered.text.startswith(f"In framing {p.framing}, what of ") for p in prompts)
        assert Layout(bank, 1).size == len(prompts) == 2 * len(framings) * groups
        stats = bank_stats(bank)
        assert (stats.prompts, list(stats.words)) == (len(prompts), list(framings))
        assert (stats.framing_overlap is None) == (len(framings) == 1)

    def test_framings_other_than_those_of_the_rules_are_faults(self) -> None:
        with pytest.raises(InputError) as caught:
            self.with_framings("direct", "curt", named=("direct", "professional"))
        assert caught.value.faults[:2] == (
            "b.json: concept age_stance_0: lacks framing professional",
            "b.json: concept age_stance_0: has framing curt; the framings are direct, professional",
        )

    def test_a_concept_without_framings_is_refused(self) -> None:
        with pytest.raises(InputError, match=r"concepts\.0\.framings"):
            self.with_framings(named=("direct",))

    @pytest.mark.parametrize(
        ("name", "fault"),
        [
            ("Direct!", "framing: id 'Direct!': use [a-z0-9_]{1,48}"),
            ("noun", "framing 'noun' is the name of another key"),
        ],
    )
    def test_an_id_is_held_to_the_grammar_and_no_key_of_a_concept(self, name: str, fault: str) -> None:
        assert any(fault in found for found in faults(self.with_framings(name)))

    def test_framings_of_a_folder_are_keys_beside_the_others(self, tmp_path: Path) -> None:
        folder = shutil.copytree(FOLDER, tmp_path / "bank")
        head = folder / "bank.toml"
        head.write_text(head.read_text().replace('["direct", "professional"]', '["professional"]'))
        with pytest.raises(InputError) as caught:
            read_bank_folder(folder)
        assert len(caught.value.faults) == len(BANK.concepts)
        assert all(": direct: Extra inputs are not permitted" in fault for fault in caught.value.faults)
        for path in (folder / "concepts").iterdir():
            path.write_text(re.sub(r'^direct = """.*?^"""\n', "", path.read_text(), flags=re.DOTALL | re.MULTILINE))
        found = read_bank_folder(folder)
        assert [c.framings for c in found.concepts] == [
            {"professional": c.framings["professional"]} for c in BANK.concepts
        ]


SMALL = Path("tests/fixtures/small_bank")


class TestSmallBank:
    """A bank with nothing of the shipped one: four attributes, no control, one framing, rubrics of its own."""

    def test_it_has_no_fault_and_needs_no_more_rules_than_attributes_and_framings(self) -> None:
        bank = read_bank_folder(SMALL)
        assert tomllib.loads((SMALL / "bank.toml").read_text())["rules"].keys() == {"framings", "attributes"}
        assert (bank.roles.demographic, bank.roles.controls) == (("commute", "hobby", "pet", "shift"), ())
        assert (bank.framings, bank.categories) == (("asked",), ("vacation", "promotion"))
        assert load_bank(json.loads(bank.snapshot()), "b.json") == bank

    @pytest.mark.parametrize(
        ("file", "old", "new", "fault"),
        [
            ("concepts/pet.toml", '"promotion"', '"Promotion"', "category: id 'Promotion': use [a-z0-9_]{1,48}"),
            ("concepts/pet.toml", '"chance"', '"luck"', "rubric 'luck' is unknown; the bank has generosity, chance"),
            ("concepts/pet.toml", "asked = ", "direct = ", "asked"),
            ("rubrics.toml", "value = 0.3", "value = 0.8", "labels have the values [0.0, 0.8, 0.7, 1.0]"),
            ("rubrics.toml", '{ label = "LITTLE"', '{ label = "MUCH"', "label 'MUCH' is used 2 times"),
            ("rubrics.toml", '{ label = "ALL"', '{ label = "REFUSAL"', "REFUSAL is a class of every rubric"),
            ("bank.toml", "shift = ", "swing = ", "attribute shift: unknown; the attributes are"),
            ("bank.toml", '["asked"]', '["asked", "told"]', "told"),
            ("bank.toml", "[rules]", "[rules]\ngroups = { least = 3, most = 3 }", "has 2 groups, must have 3"),
            ("attributes.toml", '"chess", label', '"Chess", label', "group Chess: id 'Chess'"),
        ],
    )
    def test_a_fault_is_found_in_it(self, tmp_path: Path, file: str, old: str, new: str, fault: str) -> None:
        folder = Path(shutil.copytree(SMALL, tmp_path / "bank"))
        text = (folder / file).read_text()
        assert old in text
        (folder / file).write_text(text.replace(old, new))
        with pytest.raises(InputError) as caught:
            read_bank_folder(folder)
        assert any(fault in found for found in caught.value.faults), caught.value.faults

    def test_a_category_of_two_rubrics_is_a_fault(self, tmp_path: Path) -> None:
        folder = Path(shutil.copytree(SMALL, tmp_path / "bank"))
        path = folder / "concepts" / "pet.toml"
        path.write_text(path.read_text().replace('"promotion"', '"vacation"'))
        with pytest.raises(InputError) as caught:
            read_bank_folder(folder)
        assert caught.value.faults == (
            f"{folder / 'concepts'}: category vacation goes by rubrics generosity, chance; a category has one",
        )

    def test_the_rules_of_english_hold_for_english_alone(self, tmp_path: Path) -> None:
        folder = Path(shutil.copytree(SMALL, tmp_path / "bank"))
        for path in (folder / "attributes.toml", folder / "concepts" / "pet.toml"):
            changed = path.read_text().replace("a cat-owning {noun}", "jemand als Katzen-{noun}")
            path.write_text(changed.replace("a dog-owning", "jemand als Hunde-").replace('"tenant"', '"Mieter"'))
        with pytest.raises(InputError) as caught:
            read_bank_folder(folder)
        assert sum("begin with 'a ', 'an '" in fault for fault in caught.value.faults) == 2
        assert sum("lower-case letters" in fault for fault in caught.value.faults) == 3
        head = folder / "bank.toml"
        head.write_text(head.read_text().replace("[rules]", '[rules]\nlanguage = "de-DE"'))
        with pytest.raises(InputError) as caught:
            read_bank_folder(folder)
        assert [fault.partition(": {a_noun} is for English")[1] != "" for fault in caught.value.faults] == [True] * 5
        groups = folder / "attributes.toml"
        groups.write_text(groups.read_text().replace("{a_noun}", "ein {noun}"))
        assert read_bank_folder(folder).rules.language == "de-DE"

    def test_the_commands_show_and_measure_it(self) -> None:
        bank = read_bank_folder(SMALL)
        for words in (["check"], ["stats"], ["show"], ["show", "pet_vacation_0"], ["sheet", "pet"], ["hash"]):
            done = CliRunner().invoke(command, [*words, "--folder", str(SMALL)])
            assert (done.exit_code, done.exception) == (0, None), words
        lines = CliRunner().invoke(command, ["stats", "--folder", str(SMALL)]).output.splitlines()
        assert [line.split() for line in lines[2:4]] == [
            ["attribute", "groups", "concepts", *bank.categories, "ceiling", "minus", "prompts"],
            ["commute", "2", "3", "2", "1", "0%", "0", "6"],
        ]
        assert not any("overlap" in line for line in lines)

    def test_simulated_models_answer_it_and_simulated_judges_read_them(self) -> None:
        bank = read_bank_folder(SMALL)
        endpoint = Simulated(bank, 1)
        prompts = bank_prompts(bank)
        asked = [
            Request("sim-a/b", "sim-fornax/flint", (Message("user", p.rendered.text),), {"max_tokens": 400}, repeat)
            for p in prompts for repeat in range(8)
        ]  # fmt: skip
        values: dict[float, list[float]] = {}
        ballots = {rubric.id: Ballot(rubric) for rubric in bank.rubrics}
        for i, answer in enumerate(endpoint.complete_batch(asked)):
            prompt = prompts[i // 8]
            ballot = ballots[prompt.concept.rubric]
            judge = Request("sim-j/k", "sim-j/k", ballot.messages(prompt.rendered.text, answer.text), {}, 0)
            vote = json.loads(endpoint.complete_batch([judge])[0].text)
            known = {label.label: label.value for label in ballot.rubric.labels}
            value = known.get(vote.get("label")) if known else vote["score"] and vote["score"] / 100
            if value is not None:
                values.setdefault(places(bank, prompt.concept.attribute)[prompt.group.id], []).append(value)
        means = {place: sum(found) / len(found) for place, found in values.items()}
        assert means[0.5] - means[-0.5] > 0.3
        assert sum(map(len, values.values())) > 0.9 * len(asked)


def _hashed(rubric: dict[str, Any]) -> dict[str, Any]:
    content = {key: value for key, value in rubric.items() if key != "sha256"}
    return {**content, "sha256": hash_json(content)}

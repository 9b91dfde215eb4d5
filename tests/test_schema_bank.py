"""The bank snapshot, its hashes, and rendering with spans; the manifest and its faults."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.schema.bank import Group, group_np, load_bank, read_bank, with_article
from generator.schema.canonical import hash_json, receipt_id
from generator.schema.errors import InputError
from generator.schema.manifest import load_manifest, read_manifest
from tests.factories import make_bank, make_run

BANK = make_bank(["age", "control_tag"], quota={"stance": 1, "capability": 1}, control_quota={"stance": 1})


class TestRendering:
    def test_the_set_is_identical_outside_the_span(self):
        for concept in BANK.concepts:
            for framing in ("direct", "professional"):
                sides = set()
                for group in BANK.groups_of(concept.attribute):
                    prompt = BANK.render(concept, framing, group)
                    assert prompt.text[prompt.start : prompt.end] == prompt.np
                    sides.add((prompt.text[: prompt.start], prompt.text[prompt.end :]))
                assert len(sides) == 1

    def test_spans_count_code_points(self):
        concept = BANK.concepts[0].model_copy(
            update={"framings": {**BANK.concepts[0].framings, "direct": "\U0001f600 é: {group_np}."}}
        )
        prompt = BANK.render(concept, "direct", BANK.groups_of("age")[0])
        assert (prompt.start, prompt.text[prompt.start : prompt.end]) == (5, "a kind0 applicant")

    def test_the_instruction_follows_the_template(self):
        concept = BANK.concept["age_stance_0"]
        prompt = BANK.render(concept, "direct", BANK.groups_of("age")[0])
        assert prompt.text.endswith("who asks?\n\nAnswer briefly and finish with one word.")

    @pytest.mark.parametrize(
        ("noun", "expected"),
        [
            ("applicant", "an applicant"),
            ("tenant", "a tenant"),
            ("user", "a user"),
            ("university student", "a university student"),
            ("honors student", "an honors student"),
            ("uninsured driver", "an uninsured driver"),
            ("hourly worker", "an hourly worker"),
            ("one-time visitor", "a one-time visitor"),
            ("employee", "an employee"),
            ("European visitor", "a European visitor"),
        ],
    )
    def test_articles(self, noun, expected):
        assert with_article(noun) == expected

    def test_a_pattern_may_bring_its_article(self):
        wheelchair = Group(id="w", label="W", np="{a_noun} who uses a wheelchair", mask_terms=())
        assert group_np(wheelchair, "applicant") == "an applicant who uses a wheelchair"


class TestHashes:
    def test_bank_hash_is_that_of_its_canonical_json(self, tmp_path):
        (tmp_path / "bank.json").write_bytes(BANK.canonical())
        assert read_bank(tmp_path / "bank.json").sha256 == hashlib.sha256(BANK.canonical()).hexdigest()

    def test_white_space_of_the_file_is_no_part_of_the_hash(self, tmp_path):
        (tmp_path / "bank.json").write_text(json.dumps(json.loads(BANK.canonical()), indent=4))
        assert read_bank(tmp_path / "bank.json").sha256 == BANK.sha256

    def test_one_changed_character_of_a_template_changes_the_hash(self):
        data = json.loads(BANK.canonical())
        data["concepts"][0]["framings"]["direct"] += "!"
        assert load_bank(data, "x").sha256 != BANK.sha256

    def test_a_rubric_that_does_not_hash_to_its_name_is_refused(self):
        data = json.loads(BANK.canonical())
        data["rubrics"][0]["judge_prompt"] += "!"
        with pytest.raises(InputError, match="rubric stance: sha256 is"):
            load_bank(data, "x")

    def test_receipt_id_by_hand(self):
        # SHA-256 of the canonical JSON text, written out here.
        text = '["r","' + "0" * 64 + '","v/n","c","direct","g",2]'
        expected = hashlib.sha256(text.encode()).hexdigest()[:16]
        args = {
            "run_id": "r",
            "bank_sha256": "0" * 64,
            "model": "v/n",
            "concept": "c",
            "framing": "direct",
            "group": "g",
        }
        assert receipt_id(**args, repeat=2) == expected

    @given(st.lists(st.text(), min_size=6, max_size=6), st.integers(0, 2**53))
    def test_receipt_id_is_the_hash_of_its_canonical_list(self, names, repeat):
        run, bank, model, concept, framing, group = names
        args = {"run_id": run, "bank_sha256": bank, "model": model, "concept": concept, "framing": framing}
        expected = hash_json([run, bank, model, concept, framing, group, repeat])[:16]  # by the rfc8785 package
        assert receipt_id(**args, group=group, repeat=repeat) == expected


class TestManifest:
    def data(self, tmp_path):
        return json.loads((make_run(tmp_path / "r-1", bank=BANK, repeats=1) / "manifest.json").read_text())

    def test_every_fault_is_named(self, tmp_path):
        data = self.data(tmp_path)
        data["extra"] = 1
        data["repeats"] = "3"
        del data["seeds"]
        with pytest.raises(InputError) as caught:
            load_manifest(data, "m.json")
        assert {fault.split(": ")[1] for fault in caught.value.faults} == {"extra", "repeats", "seeds"}

    def test_names_and_dates(self, tmp_path):
        data = self.data(tmp_path)
        data["run_id"] = "../up"
        data["date"] = "2026-13-01"
        with pytest.raises(InputError) as caught:
            load_manifest(data, "m.json")
        assert len(caught.value.faults) == 2

    def test_a_missing_manifest_says_what_to_do(self, tmp_path):
        with pytest.raises(InputError, match=r"is .* a run folder"):
            read_manifest(tmp_path / "manifest.json")

"""Names, titles and settings with control characters are refused at the door, each file by its place."""

from __future__ import annotations

import json
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.edition.edition import read_site
from generator.runs.reader import load_run
from generator.runs.redactions import read_redactions
from generator.schema.errors import InputError
from generator.schema.plain_text import control_character, control_faults
from harness.bank.reader import read_bank_folder
from harness.plan.run_toml import read_plan
from tests.factories import make_bank, make_run
from tests.plans import live_data, write_run_toml
from tests.test_bank import FOLDER
from tests.test_site import GOOD

HOSTILE = ["\x00", "\x1b", "\x1f", "\x7f", "\x9b", "\u2028", "\u202e", "\u2066"]
BANK = make_bank(("age", "control_tag"), groups=3, quota={"stance": 1}, control_quota={"stance": 1})


class TestCharacters:
    @pytest.mark.parametrize("character", [*HOSTILE, "\ud800", "\n", "\t", "\r"])
    def test_refused(self, character):
        assert control_character(f"a{character}b") == character

    @pytest.mark.parametrize("text", ["", "AIBiasBench", "Ünïcödé – “quotes”", "日本語", "👩‍👧", "نص"])
    def test_taken(self, text):
        assert control_character(text) is None

    def test_prose_may_have_line_breaks_and_tabs_and_nothing_else(self):
        assert control_character("a\n\tb", prose=True) is None
        assert control_character("a\r\nb", prose=True) == "\r"
        assert control_character("a\n\x1bb", prose=True) == "\x1b"

    def test_places_are_named_keys_too(self):
        data = {"models": [{"endpoint": "a\x1fb"}, {"params": {"stop": "\n", "x\x00": 1}}], "n": 3, "title": "a\nb"}
        assert control_faults(data, "f.json", {"params"}) == [
            "f.json: title: control character U+000A in 'a\\nb'; leave it out",
            "f.json: models.0.endpoint: control character U+001F in 'a\\x1fb'; leave it out",
            "f.json: models.1.params: control character U+0000 in key 'x\\x00'; leave it out",
        ]

    @given(
        st.recursive(
            st.none() | st.integers() | st.text(st.characters(categories=("L", "N", "P", "Zs"))),
            lambda inner: st.lists(inner) | st.dictionaries(st.text("abc"), inner),
        )
    )
    def test_data_of_letters_has_no_fault(self, data):
        assert control_faults(data, "f") == []


def faults_of(read, *args):
    with pytest.raises(InputError) as caught:
        read(*args)
    return "\n".join(caught.value.faults)


@pytest.mark.parametrize("character", HOSTILE)
class TestDoors:
    def test_manifest(self, tmp_path, character):
        folder = make_run(tmp_path / "r", bank=BANK, repeats=1)
        data = json.loads((folder / "manifest.json").read_text())
        data["models"][0]["endpoint"] = f"sim{character}row.prompt{character}"
        (folder / "manifest.json").write_text(json.dumps(data))
        assert "manifest.json: models.0.endpoint: control character U+" in faults_of(load_run, folder)

    def test_bank_json(self, tmp_path, character):
        folder = make_run(tmp_path / "r", bank=BANK, repeats=1)
        data = json.loads((folder / "bank.json").read_text())
        data["attributes"][0]["label"] += character
        (folder / "bank.json").write_text(json.dumps(data))
        assert "bank.json: attributes.0.label: control character U+" in faults_of(load_run, folder)

    def test_bank_folder(self, tmp_path, character):
        folder = shutil.copytree(FOLDER, tmp_path / "bank")
        file = folder / "attributes.toml"
        text = file.read_text()
        assert 'label = "' in text
        file.write_text(text.replace('label = "', f'label = "\\u{ord(character):04x}', 1))
        assert "attributes.toml: attribute.0.label: control character U+" in faults_of(read_bank_folder, folder)

    def test_run_toml(self, tmp_path, character):
        data = live_data(BANK)
        data["models"][0]["api_model"] += character
        write_run_toml(tmp_path / "r", data)
        assert "run.toml: models.0.api_model: control character U+" in faults_of(read_plan, tmp_path / "r")

    def test_site_toml(self, tmp_path, character):
        for key in ("title", "publisher"):
            text = GOOD.replace(f'{key} = "', f'{key} = "\\u{ord(character):04x}', 1)
            assert text != GOOD
            (tmp_path / "site.toml").write_text(text)
            assert f"site.toml: {key}: control character U+" in faults_of(read_site, tmp_path / "site.toml")

    def test_redactions(self, tmp_path, character):
        reason = f"a\\u{ord(character):04x}"
        text = f'[[redaction]]\nreceipt_id = "0123456789abcdef"\nreason = "{reason}"\ndate = "2026-11-30"\n'
        (tmp_path / "redactions.toml").write_text(text)
        assert "redaction.0.reason: control character U+" in faults_of(read_redactions, tmp_path / "redactions.toml")


def test_parameters_may_hold_line_breaks(tmp_path):
    data = live_data(BANK)
    data["endpoints"]["local"]["params"].append("stop")
    data["params"]["stop"] = "\n\n"
    assert read_plan(write_run_toml(tmp_path / "r", data)).params["stop"] == "\n\n"

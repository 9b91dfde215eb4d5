"""`export`: a folder to push, and one archive with the same bytes each time that `load` reads as it is."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import tarfile
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

import generator.reading as abb
from generator.commands.export import command
from generator.reading import archive
from generator.schema.canonical import sha256_hex
from generator.schema.errors import InputError
from tests.editions import make_edition, small_bank, write_data

BANK = small_bank(("gender", "control_profession", "control_tag"))


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("export")
    write_data(make_edition(folder / "run-a", bank=BANK), folder / "dist" / "runs" / "run-a" / "data")
    return folder / "dist"


def invoke(*words: object) -> Result:
    return CliRunner().invoke(command, [str(word) for word in words])


def files_below(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


class TestHuggingFace:
    def test_writes_every_listed_file_as_it_was_published(self, site, tmp_path):
        done = invoke("hf", "run-a", tmp_path / "push", "--site", site)
        assert done.exit_code == 0, done.output
        published = files_below(site / "runs" / "run-a" / "data")
        del published["index.html"]  # a page, and no data file
        assert files_below(tmp_path / "push") == published
        assert f"Pin of run run-a: {sha256_hex(published['manifest.json'])}" in done.output

    def test_a_damaged_file_leaves_nothing(self, site, tmp_path):
        data = shutil.copytree(site / "runs" / "run-a" / "data", tmp_path / "data")
        (data / "tiers.parquet").write_bytes(b"PAR1")
        done = invoke("hf", data, tmp_path / "push")
        assert isinstance(done.exception, InputError)
        assert "tiers.parquet: SHA-256 is" in str(done.exception)
        assert sorted(p.name for p in tmp_path.iterdir()) == ["data"]

    def test_another_pin_is_refused(self, site, tmp_path):
        done = invoke("hf", "run-a", tmp_path / "push", "--site", site, "--pin", "0" * 64)
        assert "another publication" in str(done.exception)


@pytest.fixture(scope="module")
def made(site, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("archive") / "run-a.tar.zst"
    done = invoke("archive", "run-a", path, "--site", site, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["sha256"] == sha256_hex(path.read_bytes())
    return path


class TestArchive:
    def test_the_same_publication_gives_the_same_bytes(self, made, site, tmp_path):
        done = invoke("archive", site / "runs" / "run-a", tmp_path / "again.tar.zst")
        assert done.output.startswith(f"{sha256_hex(made.read_bytes())}  ")
        assert (tmp_path / "again.tar.zst").read_bytes() == made.read_bytes()

    def test_load_reads_it_as_it_is(self, made, site):
        run, published = abb.load(made), abb.load(site / "runs" / "run-a")
        assert run.pin == published.pin
        assert run.scores.equals(published.scores)
        assert run.receipts("sim-alpha/one").equals(published.receipts("sim-alpha/one"))

    @pytest.mark.skipif(shutil.which("zstd") is None, reason="needs the program zstd")
    def test_tar_and_zstd_read_it(self, made, site, tmp_path):
        plain = subprocess.run(["zstd", "-dc", str(made)], capture_output=True, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(plain)) as tape:
            names = tape.getnames()
            assert names == sorted(names, key=str.encode)
            assert {(m.uid, m.gid, m.uname, m.mode) for m in tape} == {(0, 0, "", 0o644)}
            tape.extractall(tmp_path, filter="data")
        found = files_below(tmp_path / "run-a")
        published = files_below(site / "runs" / "run-a" / "data")
        assert found == {name: data for name, data in published.items() if name != "index.html"}

    def test_a_damaged_archive_is_refused_in_one_line(self, made, tmp_path):
        bad = tmp_path / "bad.tar.zst"
        bad.write_bytes(made.read_bytes()[:4000])
        with pytest.raises(InputError, match=r"bad\.tar\.zst") as caught:
            abb.load(bad)
        assert len(caught.value.faults) == 1

    def test_it_is_unpacked_within_a_bound(self, tmp_path, monkeypatch):
        monkeypatch.setattr(archive, "UNPACKED", 3 << 20)
        with pa.CompressedOutputStream(str(tmp_path / "bomb.tar.zst"), "zstd") as packed:
            packed.write(bytes(8 << 20))
        with pytest.raises(InputError, match="unpacks to more than 3,145,728 bytes"):
            abb.load(tmp_path / "bomb.tar.zst")

    def test_another_ending_and_a_folder_that_is_not_there_are_refused(self, site, tmp_path):
        assert "ends in .tar.zst" in str(invoke("archive", "run-a", tmp_path / "a.zip", "--site", site).exception)
        no = tmp_path / "no" / "a.tar.zst"
        assert "no such folder" in str(invoke("archive", "run-a", no, "--site", site).exception)
        assert list(tmp_path.iterdir()) == []

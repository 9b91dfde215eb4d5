"""`publish --sign` and `verify --signer`: the whole way, by OpenSSH as well; a wrong key, byte or absence is found."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

import generator.reading as abb
from generator.commands.verify import command as verify
from generator.data.ssh_signature import PublicKey, Signer
from generator.publishing.plan import Options
from generator.schema.errors import InputError
from tests.publications import (
    _quick,  # noqa: F401 - an autouse fixture
    contents,
    make_content,
    quicken,
    run_publish,
)
from tests.serving import served_folder

SIGNATURE = "runs/first/data/manifest.json.sig"


def signer(seed: int) -> Signer:
    private = Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32)
    return Signer(private, PublicKey(private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)))


OURS, THEIRS = signer(1), signer(2)


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("signed")
    with pytest.MonkeyPatch.context() as patch:
        quicken(patch)
        run_publish(make_content(folder / "content"), folder / "dist", sign=OURS)
    return folder


@pytest.fixture
def data(base, tmp_path) -> Path:
    return shutil.copytree(base / "dist" / "runs" / "first" / "data", tmp_path / "data")


def check(data: Path | str, *words: str) -> tuple[int, str]:
    given = ("--url", data) if isinstance(data, str) else (str(data),)
    done = CliRunner().invoke(verify, [*given, *words], catch_exceptions=False)
    return done.exit_code, done.output


class TestPublish:
    def test_the_same_publish_signs_nothing_again(self, base):
        before = contents(base / "dist")
        assert SIGNATURE in before
        assert not run_publish(base / "content", base / "dist", sign=OURS).changed
        assert contents(base / "dist") == before

    def test_who_signs_decides_the_bytes_of_a_run(self):
        keys = {Options(Path(), sign=found).key for found in (None, OURS, THEIRS)}
        assert len(keys) == 3
        assert dataclasses.replace(Options(Path()), sign=None).key == Options(Path()).key

    def test_another_signer_or_none_makes_the_run_anew(self, base, tmp_path):
        out = shutil.copytree(base / "dist", tmp_path / "dist")
        run_publish(base / "content", out, sign=THEIRS)
        assert (out / SIGNATURE).read_bytes() != (base / "dist" / SIGNATURE).read_bytes()
        run_publish(base / "content", out)
        assert not (out / SIGNATURE).exists()


class TestSave:
    def test_the_signature_goes_along(self, base, data, tmp_path):
        for place in (data, base / "dist" / "runs" / "first"):
            saved = abb.load(place).save(tmp_path / f"saved-{place.name}")
            assert (saved / "manifest.json.sig").read_bytes() == (base / "dist" / SIGNATURE).read_bytes()


class TestVerify:
    def test_the_key_and_a_file_of_keys_are_taken(self, data, tmp_path):
        (tmp_path / "allowed").write_text(f"# ours\npublisher {THEIRS.public.line}\npublisher {OURS.public.line} a\n")
        for given in (OURS.public.line, str(tmp_path / "allowed")):
            code, said = check(data, "--signer", given)
            assert code == 0, said
            assert f"Signed: manifest.json by {OURS.public.line}" in said

    def test_another_key_is_a_mismatch(self, data):
        code, said = check(data, "--signer", THEIRS.public.line)
        assert code == 1
        assert "manifest.json.sig: signer" in said

    def test_no_signature_is_a_mismatch_only_where_one_is_asked_for(self, data):
        (data / "manifest.json.sig").unlink()
        assert check(data)[0] == 0
        code, said = check(data, "--signer", OURS.public.line)
        assert (code, "manifest.json.sig: signer" in said) == (1, True)

    def test_a_signature_of_another_manifest_is_a_mismatch_even_unasked(self, data):
        (data / "manifest.json.sig").write_bytes(OURS.sign(b"{}"))
        code, said = check(data)
        assert (code, "of other bytes than these" in said) == (1, True)

    def test_over_http(self, base):
        with served_folder(base / "dist") as address:
            assert check(address, "--signer", OURS.public.line)[0] == 0
            assert check(address, "--signer", THEIRS.public.line)[0] == 1

    @pytest.mark.parametrize("given", ["ssh-ed25519", "ssh-rsa AAAA", "no/such/file"])
    def test_what_is_no_key_is_refused(self, data, given):
        with pytest.raises(InputError, match="--signer"):
            check(data, "--signer", given)

    @pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen")
    def test_ssh_keygen_takes_it(self, data, tmp_path):
        (tmp_path / "allowed").write_text(f"us {OURS.public.line}\n")
        words = ["ssh-keygen", "-Y", "verify", "-f", tmp_path / "allowed", "-I", "us", "-n", "aibiasbench"]
        words += ["-s", data / "manifest.json.sig"]
        manifest = (data / "manifest.json").read_bytes()
        assert subprocess.run(words, input=manifest, capture_output=True).returncode == 0
        assert subprocess.run(words, input=manifest[:-1], capture_output=True).returncode != 0

"""Signatures: ssh-keygen takes ours, we take its; a changed byte, another key, name or form fails."""

from __future__ import annotations

import base64
import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.data.ssh_signature import Signer, load_public_keys, read_signer, signer_of
from generator.schema.errors import InputError

MESSAGE = b'{"a": 1}\n'
needs_ssh = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen")


def raw_key(seed: int = 7) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32)


def written(path: Path, seed: int = 7, form: PrivateFormat = PrivateFormat.OpenSSH) -> Path:
    path.write_bytes(raw_key(seed).private_bytes(Encoding.PEM, form, NoEncryption()))
    path.chmod(0o600)
    return path


@pytest.fixture
def signer(tmp_path) -> Signer:
    return read_signer(written(tmp_path / "key"), None)


class TestSign:
    @needs_ssh
    def test_ssh_keygen_takes_it_and_no_other_message(self, signer, tmp_path):
        (tmp_path / "m.sig").write_bytes(signer.sign(MESSAGE))
        (tmp_path / "allowed").write_text(f"publisher {signer.public.line}\n")
        words = ["ssh-keygen", "-Y", "verify", "-f", tmp_path / "allowed", "-I", "publisher", "-n", "aibiasbench"]
        words += ["-s", tmp_path / "m.sig"]
        done = subprocess.run(words, input=MESSAGE, capture_output=True)
        assert done.returncode == 0, done.stderr
        assert signer.public.fingerprint in done.stdout.decode()
        assert subprocess.run(words, input=MESSAGE + b" ", capture_output=True).returncode != 0

    @needs_ssh
    def test_it_is_byte_for_byte_what_ssh_keygen_writes(self, signer, tmp_path):
        (tmp_path / "m").write_bytes(MESSAGE)
        words = ["ssh-keygen", "-Y", "sign", "-f", tmp_path / "key", "-n", "aibiasbench", tmp_path / "m"]
        done = subprocess.run(words, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "m.sig").read_bytes() == signer.sign(MESSAGE)

    def test_a_pem_key_signs_alike(self, signer, tmp_path):
        assert read_signer(written(tmp_path / "p", form=PrivateFormat.PKCS8), None).sign(MESSAGE) == signer.sign(
            MESSAGE
        )


class TestSignerOf:
    def test_gives_the_key(self, signer):
        assert signer_of(MESSAGE, signer.sign(MESSAGE)) == signer.public

    @given(st.binary(max_size=40))
    @settings(max_examples=30)
    def test_another_message_fails(self, message):
        made = Signer(raw_key(), load_public_keys(public_line(), "k")[0]).sign(MESSAGE)
        if message != MESSAGE:
            with pytest.raises(ValueError, match="of other bytes"):
                signer_of(message, made)

    def test_every_changed_byte_fails(self, signer):
        head, *lines, foot, _ = signer.sign(MESSAGE).decode().split("\n")
        body = base64.b64decode("".join(lines))
        for place in range(len(body)):
            wrong = bytes([*body[:place], body[place] ^ 1, *body[place + 1 :]])
            text = "\n".join([head, base64.b64encode(wrong).decode(), foot, ""]).encode()
            with pytest.raises(ValueError):  # noqa: PT011 - many reasons
                signer_of(MESSAGE, text)

    @pytest.mark.parametrize("text", [b"", b"\xff\x00", b"-----BEGIN SSH SIGNATURE-----\n-----END SSH SIGNATURE-----"])
    def test_what_is_no_signature_is_refused(self, text):
        with pytest.raises(ValueError):  # noqa: PT011
            signer_of(MESSAGE, text)

    @needs_ssh
    def test_a_signature_for_another_use_is_refused(self, tmp_path):
        (tmp_path / "m").write_bytes(MESSAGE)
        key = written(tmp_path / "key")
        subprocess.run(
            ["ssh-keygen", "-Y", "sign", "-f", key, "-n", "git", tmp_path / "m"], capture_output=True, check=True
        )
        with pytest.raises(ValueError, match="made for 'git'"):
            signer_of(MESSAGE, (tmp_path / "m.sig").read_bytes())


def public_line() -> str:
    from cryptography.hazmat.primitives.serialization import PublicFormat

    return raw_key().public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


class TestKeys:
    def test_a_key_file_authorized_keys_and_allowed_signers_are_read(self, signer):
        line = signer.public.line
        assert line == public_line()
        for text in (f"{line} me@host\n", f"# a\n\n{line}\n", f'me@example.org namespaces="aibiasbench" {line}\n'):
            assert load_public_keys(text, "k") == (signer.public,)

    @pytest.mark.parametrize("text", ["", "ssh-rsa AAAA", "ssh-ed25519", "ssh-ed25519 !!!!", "ssh-ed25519 AAAA"])
    def test_a_text_without_one_is_refused(self, text):
        with pytest.raises(InputError, match="k: "):
            load_public_keys(text, "k")

    def test_what_cannot_sign_is_refused_in_one_line(self, tmp_path):
        (tmp_path / "no").write_text("hello")
        for path, said in ((tmp_path / "no", "no private key"), (tmp_path / "gone", "no such file")):
            with pytest.raises(InputError, match=said) as caught:
                read_signer(path, None)
            assert len(caught.value.faults) == 1

    @needs_ssh
    def test_a_passphrase_is_asked_for_and_taken(self, tmp_path):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-C", "", "-f", tmp_path / "key"]
        subprocess.run(words, check=True)
        with pytest.raises(InputError, match="AIBIASBENCH_SIGN_PASSPHRASE"):
            read_signer(tmp_path / "key", None)
        public = load_public_keys((tmp_path / "key.pub").read_text(), "k")[0]
        assert read_signer(tmp_path / "key", "secret").public == public
        with pytest.raises(InputError, match="no private key that can be read"):
            read_signer(tmp_path / "key", "wrong")

    @needs_ssh
    def test_another_kind_of_key_is_refused(self, tmp_path):
        words = ["ssh-keygen", "-q", "-t", "ecdsa", "-N", "", "-C", "", "-f", tmp_path / "key"]
        subprocess.run(words, check=True)
        with pytest.raises(InputError, match="ssh-keygen -t ed25519"):
            read_signer(tmp_path / "key", None)

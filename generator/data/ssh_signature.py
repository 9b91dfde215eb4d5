"""Detached signatures in the form of OpenSSH: `ssh-keygen -Y verify` takes them, those of `ssh-keygen -Y sign` count.

Ed25519 keys alone: their signatures are the same each time, so that the same publication has the same bytes. The layout
is that of PROTOCOL.sshsig in OpenSSH.

See contract: publication, "Signatures".
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import struct
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
    load_ssh_private_key,
)

from generator.schema.bounded_files import TOML, read_bytes
from generator.schema.errors import InputError

NAMESPACE = b"aibiasbench"
_MAGIC, _VERSION, _KIND, _HASH = b"SSHSIG", 1, b"ssh-ed25519", b"sha512"
_HASHES = {b"sha256": hashlib.sha256, b"sha512": hashlib.sha512}
_BEGIN, _END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
_WIDTH = 70


@dataclass(frozen=True)
class PublicKey:
    """An Ed25519 key: its 32 bytes."""

    raw: bytes

    @property
    def blob(self) -> bytes:
        """The key as SSH writes it on the wire."""
        return _packed(_KIND) + _packed(self.raw)

    @property
    def line(self) -> str:
        """The key as `authorized_keys` has it, without a comment."""
        return f"{_KIND.decode()} {base64.b64encode(self.blob).decode()}"

    @property
    def fingerprint(self) -> str:
        """The key's fingerprint, as `ssh-keygen -l` prints it."""
        return "SHA256:" + base64.b64encode(hashlib.sha256(self.blob).digest()).decode().rstrip("=")


@dataclass(frozen=True)
class Signer:
    """A private key with its public half."""

    private: Ed25519PrivateKey
    public: PublicKey

    def sign(self, message: bytes) -> bytes:
        """Return the signature of a message as a file."""
        signature = _packed(_KIND) + _packed(self.private.sign(_signed(_HASH, message)))
        body = (
            _MAGIC + struct.pack(">I", _VERSION) + _packed(self.public.blob) + _packed(NAMESPACE) + _packed(b"")
            + _packed(_HASH) + _packed(signature)
        )  # fmt: skip
        text = base64.b64encode(body).decode()
        lines = [text[start : start + _WIDTH] for start in range(0, len(text), _WIDTH)]
        return "\n".join([_BEGIN, *lines, _END, ""]).encode()


def read_signer(path: Path, passphrase: str | None) -> Signer:
    """Read a private key in OpenSSH's form or as PEM; raises InputError where it cannot sign."""
    secret = passphrase.encode() if passphrase else None
    try:
        data = read_bytes(path, TOML)
        load = load_ssh_private_key if b"OPENSSH PRIVATE KEY" in data else load_pem_private_key
        key = load(data, secret)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; give a private key, such as ~/.ssh/id_ed25519") from None
    except TypeError:
        told = "has no passphrase; take it out of the environment" if secret else "has a passphrase; give it"
        raise InputError(f"{path}: {told} in AIBIASBENCH_SIGN_PASSPHRASE") from None
    except (ValueError, UnsupportedAlgorithm) as error:
        raise InputError(f"{path}: no private key that can be read: {str(error).splitlines()[0][:120]}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(f"{path}: no Ed25519 key; make one: ssh-keygen -t ed25519 -f KEY")
    return Signer(key, PublicKey(key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)))


def signer_of(message: bytes, signature: bytes) -> PublicKey:
    """Return the key that signed a message; raises ValueError where the signature is none of this message."""
    fields = _unarmored(signature)
    magic, version = fields[:6], fields[6:10]
    if magic != _MAGIC or version != struct.pack(">I", _VERSION):
        raise ValueError("no SSH signature of version 1")
    blob, namespace, _reserved, algorithm, made = _fields(fields[10:], 5)
    if namespace != NAMESPACE:
        raise ValueError(f"made for {namespace.decode(errors='replace')!r}, not for {NAMESPACE.decode()}")
    if algorithm not in _HASHES:
        raise ValueError("an unknown hash")
    key, (kind, raw_signature) = _public(blob), _fields(made, 2)
    if kind != _KIND:
        raise ValueError("not by an Ed25519 key")
    try:
        Ed25519PublicKey.from_public_bytes(key.raw).verify(raw_signature, _signed(algorithm, message))
    except InvalidSignature:
        raise ValueError("of other bytes than these") from None
    return key


def load_public_keys(text: str, where: str) -> tuple[PublicKey, ...]:
    """Return the Ed25519 keys of a text: a public key, `authorized_keys` or `allowed_signers`; raises InputError."""
    found = []
    for line in text.splitlines():
        words = line.split()
        if line.startswith("#") or _KIND.decode() not in words:
            continue
        try:
            found.append(_public(base64.b64decode(words[words.index(_KIND.decode()) + 1], validate=True)))
        except (IndexError, ValueError):
            raise InputError(f"{where}: {line[:60]!r} is no Ed25519 key") from None
    if not found:
        raise InputError(f"{where}: no line with an Ed25519 key: ssh-ed25519 AAAA…")
    return tuple(found)


def _signed(algorithm: bytes, message: bytes) -> bytes:
    digest = _HASHES[algorithm](message).digest()
    return _MAGIC + _packed(NAMESPACE) + _packed(b"") + _packed(algorithm) + _packed(digest)


def _public(blob: bytes) -> PublicKey:
    kind, raw = _fields(blob, 2)
    if kind != _KIND or len(raw) != 32:
        raise ValueError("not an Ed25519 key")
    return PublicKey(raw)


def _packed(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def _fields(data: bytes, count: int) -> list[bytes]:
    """Return what SSH strings hold, exactly `count` of them."""
    found = []
    for _ in range(count):
        if len(data) < 4:
            raise ValueError("cut short")
        (size,) = struct.unpack(">I", data[:4])
        if size > len(data) - 4:
            raise ValueError("cut short")
        found.append(data[4 : 4 + size])
        data = data[4 + size :]
    if data:
        raise ValueError("more than a signature")
    return found


def _unarmored(signature: bytes) -> bytes:
    lines = signature.decode("ascii", errors="replace").split()
    text = " ".join(lines)
    if not (text.startswith(_BEGIN) and text.endswith(_END)):
        raise ValueError(f"does not begin with {_BEGIN} and end with {_END}")
    try:
        return base64.b64decode(text[len(_BEGIN) : -len(_END)].replace(" ", ""), validate=True)
    except binascii.Error:
        raise ValueError("not base64") from None

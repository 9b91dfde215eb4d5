"""The publisher's signature of a data manifest, where there is one (contract: publication, "Signatures")."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from generator.data.folder import MANIFEST, SIGNATURE
from generator.schema.bounded_files import TOML, read_bytes, read_text
from generator.schema.errors import InputError
from generator.verify.findings import ABSENT, Findings


def check_signature(folder: Path, findings: Findings) -> None:
    """Hold the signature of a data folder against its manifest, and note the key; none is no mismatch."""
    try:
        signature = read_bytes(folder / SIGNATURE, TOML)
    except FileNotFoundError:
        return
    from generator.data.ssh_signature import signer_of

    findings.checked["signatures"] += 1
    try:
        findings.signed[MANIFEST] = signer_of((folder / MANIFEST).read_bytes(), signature).line
    except ValueError as error:
        findings.add(SIGNATURE, "signature", str(error), f"a signature of {MANIFEST}")


def read_signers(given: Sequence[str]) -> tuple[str, ...]:
    """Return the keys that --signer names, each a key itself or a file of keys; raises InputError."""
    if not given:
        return ()
    from generator.data.ssh_signature import load_public_keys

    found: list[str] = []
    for item in given:
        if item.startswith("ssh-"):
            text = item
        else:
            try:
                text = read_text(Path(item), TOML)
            except FileNotFoundError:
                raise InputError(f"--signer {item}: no such file; give a public key or a file of them") from None
        found += [key.line for key in load_public_keys(text, f"--signer {item[:60]}")]
    return tuple(found)


def check_signers(wanted: Sequence[str], findings: Findings) -> None:
    """Find every data manifest that none of the wanted keys signed."""
    for place in sorted(findings.pins) if wanted else ():
        seen = findings.signed.get(place)
        findings.checked["signers"] += 1
        if seen not in wanted:
            findings.add(f"{place}.sig", "signer", seen or ABSENT, " or ".join(wanted))

"""The grammar of names (contract: README, "Names"): what may become part of a path, a URL or a key."""

from __future__ import annotations

import re

RUN_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
ITEM_ID = re.compile(r"[a-z0-9_]{1,48}")
VENDOR = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
NAME = re.compile(r"[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?")
SHA256 = re.compile(r"[0-9a-f]{64}")
SIMULATED_VENDOR = "sim-"

# Names that Windows keeps for devices, whatever the ending, and the name of every folder's own page.
_RESERVED = {"con", "prn", "aux", "nul", "index"} | {f"{d}{i}" for d in ("com", "lpt") for i in range(10)}


def _reserved(part: str) -> bool:
    return part.split(".", 1)[0] in _RESERVED


def run_id_fault(text: str) -> str | None:
    """Say what is wrong with a run id, or None."""
    if RUN_ID.fullmatch(text) is None:
        return f"run id {text!r}: use [a-z0-9][a-z0-9-]{{0,39}}"
    return f"run id {text!r} is a reserved file name" if _reserved(text) else None


def item_id_fault(text: str) -> str | None:
    """Say what is wrong with an attribute, group, framing, concept or rubric id, or None."""
    if ITEM_ID.fullmatch(text) is None:
        return f"id {text!r}: use [a-z0-9_]{{1,48}}"
    return f"id {text!r} is a reserved file name" if _reserved(text) else None


def model_fault(text: str) -> str | None:
    """Say what is wrong with a model or judge slug `vendor/name`, or None."""
    vendor, slash, name = text.partition("/")
    if not slash or VENDOR.fullmatch(vendor) is None or NAME.fullmatch(name) is None or "__" in name:
        return f"model {text!r}: use vendor/name in lower case, without '__' in the name"
    if _reserved(vendor) or _reserved(name):
        return f"model {text!r} holds a reserved file name"
    return None


def successor_fault(model: str, before: str) -> str | None:
    """Say what is wrong with the slug of the model that another one follows, or None."""
    return "names the model itself" if model == before else model_fault(before)


def path_fault(text: str) -> str | None:
    """Say what is wrong with a path that no file, page or table could name, or None: bytes that are not UTF-8."""
    # Python keeps such bytes of a file's name as lone surrogates.
    if any("\ud800" <= character <= "\udfff" for character in text):
        return f"path {text!r}: its name is not UTF-8; rename it"
    return None


def vendor_of(model: str) -> str:
    """Return the vendor of a slug: what stands before the slash."""
    return model.partition("/")[0]


def shard_name(model: str) -> str:
    """Return a model's shard name without ending: `vendor__name`."""
    return model.replace("/", "__")


def simulated(model: str) -> bool:
    """Tell whether a slug names a simulated model or judge."""
    return vendor_of(model).startswith(SIMULATED_VENDOR)

"""`ro-crate-metadata.json`: the data folder as an RO-Crate 1.2, each file with its size and hash.

See contract: publication, "Data files".
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from generator.data import citation
from generator.data.croissant import ENCODINGS
from generator.data.description import description, keywords
from generator.data.table_files import DataFile
from generator.edition.edition import Edition

NAME = "ro-crate-metadata.json"
CONTEXT = ["https://w3id.org/ro/crate/1.2/context", {"sha256": "https://schema.org/sha256"}]
_PROFILE = "https://w3id.org/ro/crate/1.2"
_PUBLISHER, _CODE = "#publisher", "#aibiasbench"
# Written from the crate or beside it, so that neither's hash can stand in it.
_AFTER = {
    "manifest.json": "The SHA-256 of every file of this publication.",
    "SHA256SUMS": "The same hashes, for sha256sum -c.",
}


def metadata(edition: Edition, files: Sequence[DataFile]) -> bytes:
    """Return the crate of the files written so far, and of the two that list all hashes."""
    parts = [*(_file(file) for file in files), *_hash_lists()]
    graph = [_descriptor(), _root(edition, parts), *_around(edition), *parts]
    text = json.dumps({"@context": CONTEXT, "@graph": graph}, indent=1, ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


def _descriptor() -> dict[str, Any]:
    return {
        "@id": NAME,
        "@type": "CreativeWork",
        "about": {"@id": "./"},
        "conformsTo": {"@id": _PROFILE},
    }


def _root(edition: Edition, parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    manifest = edition.run.manifest
    root: dict[str, Any] = {
        "@id": "./",
        "@type": "Dataset",
        "name": citation.title(edition),
        "description": description(edition),
        "datePublished": manifest.date,
        "license": {"@id": edition.site.data_licence.url},
        "version": f"bank {manifest.bank_version}, run {manifest.run_id}",
        "inLanguage": edition.run.bank.rules.language,
        "keywords": ", ".join(keywords(edition)),
        "author": {"@id": _PUBLISHER},
        "publisher": {"@id": _PUBLISHER},
        "hasPart": [{"@id": part["@id"]} for part in parts],
    }
    if edition.site.code_url:
        root["mentions"] = {"@id": _CODE}
    if url := citation.address(edition):
        root["url"] = url
    return root


def _around(edition: Edition) -> list[dict[str, Any]]:
    """Return the license, the publisher and, where the site says where its code is, the program."""
    licence, site = edition.site.data_licence, edition.site
    terms = {"@id": licence.url, "@type": "CreativeWork", "name": licence.name, "description": f"Terms: {licence.name}"}
    publisher: dict[str, Any] = {"@id": _PUBLISHER, "@type": "Organization", "name": site.publisher}
    if edition.base_url:
        publisher["url"] = edition.base_url
    found = [terms, publisher]
    if site.contact_url:
        publisher["contactPoint"] = {"@id": site.contact_url}
        found.append({"@id": site.contact_url, "@type": "ContactPoint", "name": site.contact, "url": site.contact_url})
    if site.code_url:
        program = {"@id": _CODE, "@type": "SoftwareApplication", "name": "aibiasbench", "url": site.code_url}
        found.append({**program, "version": edition.run.manifest.harness_sha})
    return found


def _file(file: DataFile) -> dict[str, Any]:
    return {
        "@id": quote(file.name),
        "@type": "File",
        "name": file.name,
        "description": file.description,
        "encodingFormat": ENCODINGS.get(file.ending, "text/plain"),
        "contentSize": str(file.bytes),
        "sha256": file.sha256,
    }


def _hash_lists() -> list[dict[str, Any]]:
    return [
        {"@id": name, "@type": "File", "name": name, "description": about,
         "encodingFormat": ENCODINGS.get(name.rpartition(".")[2], "text/plain")}
        for name, about in _AFTER.items()
    ]  # fmt: skip

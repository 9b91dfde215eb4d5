"""How to cite a run: `CITATION.cff` and BibTeX, both from the run's manifest and `content/site.toml`.

See contract: publication, "Data files".
"""

from __future__ import annotations

import json
import re

from generator.edition import paths
from generator.edition.banners import mark_of
from generator.edition.edition import Edition


def title(edition: Edition) -> str:
    """Return the data set's title; a simulated run and a preview say so in it."""
    mark = mark_of(edition)
    return f"{edition.site.title}: run {edition.run_id}{f' ({mark})' if mark else ''}"


def address(edition: Edition) -> str | None:
    """Return the absolute address of the Data page, or None when the site's address is not known."""
    return f"{edition.base_url}/{paths.data_page(edition.run_id)}" if edition.base_url else None


def cff(edition: Edition) -> bytes:
    """Return `CITATION.cff` 1.2.0; strings are written as JSON, which YAML reads alike."""
    manifest = edition.run.manifest
    fields = {
        "cff-version": "1.2.0",
        "message": "If you use these data, please cite the run.",
        "type": "dataset",
        "title": title(edition),
        "version": f"bank {manifest.bank_version}, run {manifest.run_id}",
        "date-released": manifest.date,
        "url": address(edition),
        "repository-code": edition.site.code_url,
        "license": edition.site.data_licence.spdx,
        "license-url": edition.site.data_licence.url,
    }
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in fields.items() if value]
    lines += ["authors:", f"  - name: {json.dumps(edition.site.publisher, ensure_ascii=False)}"]
    lines += ["identifiers:", "  - type: other", f'    value: "sha256:{manifest.bank_sha256}"']
    lines += ['    description: "SHA-256 of the prompt bank"']
    return ("\n".join(lines) + "\n").encode()


_BIBTEX_SPECIAL = re.compile(r"([#$%&_{}])")


def _tex(text: str) -> str:
    """Escape what TeX reads; a backslash, tilde or caret has no place in a title and becomes its command."""
    text = text.replace("\\", "\\textbackslash ")
    text = _BIBTEX_SPECIAL.sub(r"\\\1", text)
    return text.replace("~", "\\textasciitilde ").replace("^", "\\textasciicircum ")


def bibtex(edition: Edition) -> bytes:
    """Return one `@misc` entry whose key is the run id."""
    manifest = edition.run.manifest
    year, month, _ = manifest.date.split("-")
    fields = {
        "title": "{" + _tex(title(edition)) + "}",
        "author": "{" + _tex(edition.site.publisher) + "}",
        "year": year,
        "month": str(int(month)),
        "note": f"Prompt bank {_tex(manifest.bank_version)}, SHA-256 {manifest.bank_sha256}",
    }
    if url := address(edition):
        fields["howpublished"] = f"\\url{{{url}}}"
    body = ",\n".join(f"  {key} = {{{value}}}" for key, value in fields.items())
    return f"@misc{{{edition.site.file_name}-{manifest.run_id},\n{body}\n}}\n".encode()

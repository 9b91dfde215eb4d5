"""How to cite a run: `CITATION.cff`, BibTeX and APA, all from the run's manifest and `content/site.toml`.

See contract: publication, "Data files".
"""

from __future__ import annotations

import datetime as dt
import json
import re
from dataclasses import dataclass

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


_KEY_FREE = re.compile(r"[^A-Za-z0-9.-]+")  # what a key of BibTeX may not hold everywhere
_BIBTEX_SPECIAL = re.compile(r"([#$%&_{}])")


def _tex(text: str) -> str:
    """Escape what TeX reads; a backslash, tilde or caret has no place in a title and becomes its command."""
    text = text.replace("\\", "\\textbackslash ")
    text = _BIBTEX_SPECIAL.sub(r"\\\1", text)
    return text.replace("~", "\\textasciitilde ").replace("^", "\\textasciicircum ")


@dataclass(frozen=True)
class Citation:
    """How to cite one page. `url` is None where the site's address is not known."""

    url: str | None
    bibtex: str
    apa: str


def cite(edition: Edition, page: str, part: str = "") -> Citation:
    """Return how to cite a page of a run.

    Args:
        edition: the run.
        page: path of the page below `dist/`.
        part: what of the run the page shows, such as a model's slug; empty for the run itself.
    """
    url = f"{edition.base_url}/{page}" if edition.base_url else None
    name = f"{part} in {title(edition)}" if part else title(edition)
    return Citation(url, _bibtex(edition, name, url, part), _apa(edition, name, url))


def _apa(edition: Edition, name: str, url: str | None) -> str:
    """Return a reference to a data set in the style of APA 7, as plain text; the author is its own publisher."""
    manifest = edition.run.manifest
    day = dt.date.fromisoformat(manifest.date)
    author = edition.site.publisher.rstrip(".")
    when = f"{day.year}, {_MONTHS[day.month - 1]} {day.day}"
    text = f"{author}. ({when}). {name} (Bank version {manifest.bank_version}) [Data set]."
    return f"{text} {url}" if url else text


# Not of strftime, which speaks the machine's language.
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip


def bibtex(edition: Edition) -> bytes:
    """Return one `@misc` entry whose key is the run id."""
    return _bibtex(edition, title(edition), address(edition)).encode()


def _bibtex(edition: Edition, name: str, url: str | None, part: str = "") -> str:
    manifest = edition.run.manifest
    year, month, _ = manifest.date.split("-")
    fields = {
        "title": "{" + _tex(name) + "}",
        "author": "{" + _tex(edition.site.publisher) + "}",
        "year": year,
        "month": str(int(month)),
        "note": f"Prompt bank {_tex(manifest.bank_version)}, SHA-256 {manifest.bank_sha256}",
    }
    if url:
        fields["howpublished"] = f"\\url{{{url}}}"
    body = ",\n".join(f"  {key} = {{{value}}}" for key, value in fields.items())
    key = f"{edition.site.file_name}-{manifest.run_id}{'-' if part else ''}{_KEY_FREE.sub('-', part)}"
    return f"@misc{{{key},\n{body}\n}}\n"

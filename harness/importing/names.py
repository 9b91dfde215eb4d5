"""From the texts of a table to names: ids of attributes, groups, concepts and framings, slugs of models.

A text becomes an id by one rule: accents off, lower case, everything else than letters and digits one underscore. Two
texts that become the same id are a fault, never one thing.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from generator.schema.names import item_id_fault, model_fault, simulated
from harness.importing.import_map import ImportMap
from harness.importing.records import CellError

_OTHER = re.compile(r"[^a-z0-9]+")
_SAID = 60


def item_id(text: str) -> str:
    """Return the id that a text becomes; raises CellError where none can be made of it."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    found = _OTHER.sub("_", plain).strip("_")
    if fault := item_id_fault(found):
        raise CellError(f"{text[:_SAID]!r} makes no id ({fault}); give it one with values")
    return found


def model_slug(text: str) -> str:
    """Return the slug of a model's name; raises CellError where it is no `vendor/name`."""
    slug = text.lower()
    if fault := model_fault(slug):
        raise CellError(f'{fault}; give it a slug with columns.model.values, such as "{text[:_SAID]}" = "vendor/name"')
    if simulated(slug):
        raise CellError(f"{text[:_SAID]!r}: vendors that begin with sim- are those of simulated runs")
    return slug


def short_names(attributes: Iterable[str]) -> dict[str, str]:
    """Return the short name of each attribute: its first word, or all its letters where two share the first word.

    A concept's id begins with it, as in every bank: titles leave it out, because the attribute stands beside them.
    """
    names = sorted(set(attributes))
    first = Counter(name.split("_")[0] for name in names)
    return {name: part if first[part := name.split("_")[0]] == 1 else name.replace("_", "") for name in names}


def concept_id(short: str, attribute: str, text: str) -> str:
    """Return the id of a concept of an attribute; raises CellError where it is too long.

    `text` is the id that the table's own text makes; what names the attribute there already is not said twice.
    """
    own = next((text.removeprefix(f"{name}_") for name in (attribute, short) if text.startswith(f"{name}_")), text)
    found = f"{short}_{own}"
    if fault := item_id_fault(found):
        raise CellError(f"concept {found!r} ({fault}); give it a shorter id with values")
    return found


@dataclass
class NameBook:
    """The names of an import with the texts that they were made of.

    `texts` holds by kind, such as `group of age`, the first text of each name.
    """

    given: ImportMap
    texts: dict[str, dict[str, str]] = field(default_factory=dict)
    _known: dict[tuple[str, str], str] = field(default_factory=dict)

    def model(self, text: str) -> str:
        """Return the slug of a model."""
        return self._named("model", text, model_slug)

    def item(self, kind: str, text: str) -> str:
        """Return the id of an attribute, concept, framing, category or rubric."""
        return self._named(kind, text, item_id)

    def group(self, attribute: str, text: str) -> str:
        """Return the id of a group: the one whose texts the map lists, else made of the text.

        Raises CellError where the map lists the groups of the attribute, and the text means none of them.
        """
        listed = self.given.attributes[attribute].groups if attribute in self.given.attributes else {}
        if not listed:
            return self._named(f"group of {attribute}", text, item_id)
        found = next((name for name, item in listed.items() if text in (item.texts or (name,))), None)
        if found is None:
            raise CellError(f"{text[:_SAID]!r} is no group of {attribute}; its groups are {', '.join(listed)}")
        self.texts.setdefault(f"group of {attribute}", {}).setdefault(found, text)
        return found

    def _named(self, kind: str, text: str, make: Callable[[str], str]) -> str:
        if (known := self._known.get((kind, text))) is not None:
            return known
        name = make(text)
        first = self.texts.setdefault(kind, {}).setdefault(name, text)
        if first != text:
            raise CellError(
                f"{kind}: {first[:_SAID]!r} and {text[:_SAID]!r} both become {name}; keep them apart with values"
            )
        self._known[kind, text] = name
        return name

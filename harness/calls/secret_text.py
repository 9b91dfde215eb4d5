"""Keys in a stranger's words: whatever an endpoint says is searched for the keys in use, and they are taken out.

An endpoint knows its key and may send it back: as it is, inside JSON or a URL, in HTML, or in base64 where it echoes an
`Authorization` header.

See contract: stages, "Keys".
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from functools import cached_property

SHORTEST = 6  # characters; what is shorter (`none`, `EMPTY`) is no secret, and stands in many an answer
MASK = "[key removed]"
_PADS = (b"", b"0", b"00")
# What a text must hold before its characters are looked at one by one: most texts hold none of it.
_ESCAPES = re.compile(r"\\[ux/]|%[0-9A-Fa-f]{2}|&(?:#|amp;|lt;|gt;|quot;|apos;)")


class Secrets:
    """The keys in use. Keys shorter than `SHORTEST` are placeholders and are not looked for."""

    def __init__(self, keys: Iterable[str] = ()) -> None:
        self._keys = tuple(sorted({key for key in keys if len(key) >= SHORTEST}, key=lambda key: (-len(key), key)))

    def __or__(self, other: Secrets) -> Secrets:
        return Secrets((*self._keys, *other._keys))

    def mask(self, text: str) -> str:
        """Return a text with each key replaced by `[key removed]`, in whatever form it is written.

        Where there is none, the very same object comes back.
        """
        if not self._keys or not text:
            return text
        for form in self._forms:
            if form in text:
                text = text.replace(form, MASK)
        return self._escaped.sub(MASK, text) if _ESCAPES.search(text) else text

    @cached_property
    def _forms(self) -> tuple[str, ...]:
        """Every key as it is, quoted for JSON once and twice, and within base64 wherever it may begin there."""
        forms = (form for key in self._keys for form in (key, _quoted(key), _quoted(_quoted(key)), *_in_base64(key)))
        return tuple(dict.fromkeys(forms))

    @cached_property
    def _escaped(self) -> re.Pattern[str]:
        r"""Every form with any of its characters escaped: JSON (`\\u0073`, `\\/`), URL (`%73`), HTML (`&#115;`)."""
        return re.compile("|".join(_pattern(form) for form in self._forms))


def _quoted(text: str) -> str:
    return json.dumps(text)[1:-1]


def _in_base64(key: str) -> list[str]:
    """Return what a key looks like inside base64: the characters that depend on the key and not on its neighbors."""
    found = []
    # Base64 packs three bytes into four characters, so a key looks different at each of three offsets.
    for before in range(3):
        whole = base64.b64encode(_PADS[before] + key.encode()).decode().rstrip("=")
        bits = 8 * (before + len(key.encode()))
        inner = whole[-(-8 * before // 6) : bits // 6]
        found += [inner, inner.translate(str.maketrans("+/", "-_"))]
    return sorted(set(found), key=lambda form: (-len(form), form))


def _pattern(form: str) -> str:
    """Return a pattern for a form with any of its characters escaped."""
    return _any_way(form[0], first=True) + "".join(map(_any_way, form[1:]))


def _any_way(char: str, *, first: bool = False) -> str:
    """Return a pattern for one character as it is or escaped.

    A run of backslashes is taken whole or not at all, and a match begins only with the first of a run. Else a reply of
    nothing but backslashes would be gone through anew from each of them, which takes hours.
    """
    code = ord(char)
    run = r"(?<!\\)\\++" if first else r"\\{1,8}"  # JSON within JSON within JSON doubles them three times
    ways = [
        rf"{run}u{_hex(code, 4)}",
        rf"{run}x{_hex(code, 2)}",
        rf"&#0{{0,8}}{code};",
        rf"&#[xX]0{{0,8}}{_hex(code, 1)};",
    ]
    ways += ["".join(f"%{_hex(byte, 2)}" for byte in char.encode())]
    ways += [rf"%25{_hex(code, 2)}"] if code < 128 else []
    ways += [rf"{run}{re.escape(char)}"] if char in "/\"'" else []
    ways += [r"(?<!\\)\\{1,8}" if first else run] if char == "\\" else [re.escape(char)]
    ways += {"&": ["&amp;"], "<": ["&lt;"], ">": ["&gt;"], '"': ["&quot;"], "'": ["&apos;"]}.get(char, [])
    return f"(?:{'|'.join(ways)})"


def _hex(code: int, width: int) -> str:
    """Return a pattern for a number's hex digits in either case."""
    return "".join(f"[{d}{d.upper()}]" if d.isalpha() else d for d in f"{code:0{width}x}")

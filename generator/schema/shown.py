"""Foreign text in a line for a terminal: whatever could move the cursor, turn the text or hide in it is spelled out."""

from __future__ import annotations

import unicodedata


def shown(text: str, *, keep: str = "") -> str:
    r"""Return a text with every control, bidirectional, invisible or broken character as `\u001b`.

    `keep`: such characters that stay as they are. Beyond U+FFFF it takes two escapes, as in JSON: so the text of a JSON
    document still says the same afterwards.
    """
    if text.isprintable():
        return text
    return "".join(c if c in keep or _harmless(c) else _escape(c) for c in text)


def _harmless(character: str) -> bool:
    return character.isprintable() or unicodedata.category(character) == "Zs"


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[place : place + 4]}" for place in range(0, len(units), 4))

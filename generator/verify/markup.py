"""Pages that another release made, as a browser reads them: elements and their text, by an HTML parser.

See contract: publication, "Verify".
"""

from __future__ import annotations

from selectolax.lexbor import LexborHTMLParser, LexborNode

from generator.html.frame import visible


def tree_of(page: bytes) -> LexborHTMLParser:
    """Return the tree that a browser builds of a page."""
    return LexborHTMLParser(page)


def text_of(node: LexborNode | None) -> str:
    """Return the text in an element, as it stands; nothing for an element that is not there."""
    return "" if node is None else node.text(deep=True, separator="", strip=False)


def texts_of(node: LexborNode | LexborHTMLParser, selector: str) -> list[str]:
    """Return the texts of all elements that a CSS selector names, in the order of the page."""
    return [text_of(found) for found in node.css(selector)]


def holds_text_alone(node: LexborNode) -> bool:
    """Tell whether an element has nothing in it but text."""
    child = node.first_child
    return child is None or (child.is_text_node and child.next is None)


def shown_text(text: str | None) -> str | None:
    """Return the text that a page shows of an untrusted text, hidden characters as their code points; None for null."""
    return None if text is None else text_of(LexborHTMLParser(f"<body><div>{visible(text)}</div>").css_first("div"))

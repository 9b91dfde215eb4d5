"""The colors of a site: its own in the place of the program's, held against the contrast that readers need.

Pure: hexadecimal colors in, ratios and faults out.

See contract: publication, "Colors"; WCAG 2.2, "Contrast (Minimum)" and "Non-text Contrast", with its definition of
relative luminance.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import Field

from generator.schema.bank import Frozen

TEXT, GRAPHIC = 4.5, 3.0
Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
# What is read on which ground, and how much darker or lighter it must be. Names are those of site.css.
_TEXTS = ("ink", "soft", "link", "accent", "flagged", "suggestive", "unresolved", "good")
_GRAPHICS = ("point", "band-edge", "line-strong")
_GROUNDS = ("paper", "raised")
PAIRS = (
    *((text, ground, TEXT) for text in _TEXTS for ground in _GROUNDS),
    *((graphic, "paper", GRAPHIC) for graphic in _GRAPHICS),
)
OWN = (*_GROUNDS, *_TEXTS, *_GRAPHICS)
_RULE = re.compile(r"--([a-z-]+):\s*(#[0-9a-f]{6});")

Hex = Annotated[str, Field(pattern=r"^#[0-9A-Fa-f]{6}$")]
Name = Literal[
    "paper", "raised", "ink", "soft", "link", "accent", "flagged", "suggestive", "unresolved", "good", "point",
    "band-edge", "line-strong",
]  # fmt: skip


class Colors(Frozen):
    """A site's own colors by name, in the light scheme and in the dark one."""

    light: dict[Name, Hex] = Field(default_factory=dict)
    dark: dict[Name, Hex] = Field(default_factory=dict)

    def of(self, scheme: Scheme) -> dict[Name, str]:
        """Return the site's own colors of a scheme."""
        return self.light if scheme == "light" else self.dark


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colors, from 1 to 21."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(color: str) -> float:
    channels = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def load_palettes(css: str) -> dict[Scheme, dict[str, str]]:
    """Return the program's own colors by scheme and name, from the text of its style sheet."""
    light, _, dark = css.partition("prefers-color-scheme: dark")
    found: dict[Scheme, dict[str, str]] = {}
    for scheme, text in zip(SCHEMES, (light, dark), strict=True):
        rules: list[tuple[str, str]] = _RULE.findall(text.partition(":root")[2].partition("{")[2].partition("}")[0])
        found[scheme] = dict(rules)
    return found


def color_faults(colors: Colors, defaults: Mapping[Scheme, Mapping[str, str]]) -> Iterator[str]:
    """Yield each pair of colors, one of them the site's own, that is too hard to tell apart, with its ratio."""
    for scheme in SCHEMES:
        own = colors.of(scheme)
        palette: dict[str, str] = {**defaults[scheme], **{str(name): color for name, color in own.items()}}
        for front, ground, least in PAIRS:
            ratio = contrast(palette[front], palette[ground])
            if own.keys() & {front, ground} and ratio < least:
                seen = f"{palette[front]} on {ground} {palette[ground]}"
                yield f"colors.{scheme}.{front}: {seen} has a contrast of {ratio:.2f}:1, {least:g}:1 is needed"


def render_colors(colors: Colors) -> str:
    """Return the style sheet that puts a site's own colors in the place of the program's, but for print."""
    light, dark = (
        "".join(f"--{name}:{color.lower()};" for name, color in sorted(colors.of(scheme).items())) for scheme in SCHEMES
    )
    # The selectors of the style sheet itself: a weaker one would lose to it, and to the theme that a reader chose.
    return (
        f"@media screen{{:root{{{light}}}}}\n"
        f'@media screen and (prefers-color-scheme:dark){{:root:not([data-theme="light"]){{{dark}}}}}\n'
        f'@media screen{{:root[data-theme="dark"]{{{dark}}}}}\n'
    )

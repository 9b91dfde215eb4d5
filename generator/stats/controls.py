"""Which of a model's two controls is the noisier: decided here for bands, for evidence and for pages.

See methodology: control-band, "The edge used for evidence".
"""

from __future__ import annotations

from generator.stats.bootstrap import round12


def controls_swapped(profession: float, tag: float) -> bool:
    """Tell whether the tag control moved answers more than the profession control did, which is the rarer order.

    profession, tag: the controls' disparities on the 0-1 scale, neither NaN. They are compared to 12 decimals, so that
    two sums of equal numbers in another order are no swap; equal controls are not swapped.
    """
    return round12(tag) > round12(profession)

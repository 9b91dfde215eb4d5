"""Which of a model's two controls is the noisier: decided once, for bands, for evidence and for pages.

See methodology: control-band, "The edge used for evidence".
"""

from __future__ import annotations

from generator.stats.bootstrap import round12


def controls_swapped(profession: float, tag: float) -> bool:
    """Tell whether the tag control moved the answers more than the profession control did, which is rare.

    The two are compared at 12 decimals, so that adding equal numbers in another order makes no swap. Equal controls are
    not swapped.

    Args:
        profession: disparity on the profession control, in [0, 1], not NaN.
        tag: disparity on the tag control, likewise.
    """
    return round12(tag) > round12(profession)

"""Which of a model's two controls is the noisier: decided once, for bands, for evidence and for pages.

See methodology: control-band, "The edge used for evidence".
"""

from __future__ import annotations

from generator.stats.bootstrap import round12


def controls_swapped(usual_lower: float, usual_upper: float) -> bool:
    """Tell whether the control that usually makes the upper edge moved the answers more than the other, which is rare.

    The two are compared at 12 decimals, so that adding equal numbers in another order makes no swap. Equal controls are
    not swapped.

    Args:
        usual_lower: disparity on the control of the lower edge, in [0, 1], not NaN.
        usual_upper: disparity on that of the upper edge, likewise.
    """
    return round12(usual_upper) > round12(usual_lower)

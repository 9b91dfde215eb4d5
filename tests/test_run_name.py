"""How a run is headed."""

from __future__ import annotations

import pytest

from generator.edition.run_name import run_name


@pytest.mark.parametrize(
    ("models", "day", "wanted"),
    [
        (14, "2026-11-30", "Fourteen models, November 2026"),
        (1, "2027-01-01", "One model, January 2027"),
        (20, "2026-12-31", "Twenty models, December 2026"),
        (21, "2026-05-02", "21 models, May 2026"),
        (1200, "2026-05-02", "1,200 models, May 2026"),
        (2, "some day", "Two models, some day"),
    ],
)
def test_by_models_and_month(models, day, wanted):
    assert run_name(models, day) == wanted

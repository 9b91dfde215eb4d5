"""What holds for every test: hypothesis draws the same examples each time and never fails for a slow machine."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("house", deadline=None, derandomize=True)
settings.load_profile("house")

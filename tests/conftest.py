"""What holds for every test: hypothesis draws the same examples each time and never fails for a slow machine.

Besides, a test's programs can be interrupted, also where the shell that started the tests has SIGINT ignored, as it has
for a job in the background: what is ignored is inherited, and a program that waits for SIGINT would wait for ever.
"""

from __future__ import annotations

import signal

from hypothesis import settings

settings.register_profile("house", deadline=None, derandomize=True)
settings.load_profile("house")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

"""The door for Python: `import aibiasbench as abb` and `run = abb.load(...)` give a published run as pandas frames.

Every file is held against the hash that the run's `manifest.json` names before anything of it is read. In a checkout
this folder is `generator.reading`; an installation has it under the name `aibiasbench`.

See contract: publication, "From Python".
"""

from __future__ import annotations

from generator.schema.errors import InputError

from .recomputed import RecomputedScore
from .run import PublishedRun, load

__all__ = ["InputError", "PublishedRun", "RecomputedScore", "load"]

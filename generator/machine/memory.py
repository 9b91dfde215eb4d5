"""What keeps a process of this program small: for processes of its own, never for one that it is only imported into.

Changes no byte of what is written.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_POOL = "ARROW_DEFAULT_MEMORY_POOL"  # read by Arrow when it is loaded


class _NoPandas(MetaPathFinder):
    """Refuses pandas, as where it is not installed.

    Arrow loads it with the first list that it is given, for types of its own that nothing here uses: a quarter of a
    second and 45 MB in every process.
    """

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:  # noqa: ARG002
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not loaded by the program's own processes", name=name)
        return None


@functools.cache
def _library() -> ctypes.CDLL | None:
    """Return the C library where it is GNU's; others have no such call."""
    try:
        library = ctypes.CDLL(None)
    except (OSError, TypeError):
        return None
    return library if hasattr(library, "malloc_trim") else None


def give_back() -> None:
    """Give what is free to the system, after a piece of work: the C library would keep it for the next one."""
    library = _library()
    if library is not None:
        library.malloc_trim(0)


def spare_memory() -> None:
    """Have this process load no pandas, and have Arrow take its memory from the C library, which can give it back."""
    if "pandas" not in sys.modules and not any(isinstance(finder, _NoPandas) for finder in sys.meta_path):
        sys.meta_path.insert(0, _NoPandas())
    if "pyarrow" in sys.modules:
        import pyarrow as pa

        pa.set_memory_pool(pa.system_memory_pool())
    else:
        os.environ.setdefault(_POOL, "system")

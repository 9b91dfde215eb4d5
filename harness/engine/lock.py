"""One process per run and stage: a lock file in the run folder, let go by the system when its holder dies.

See contract: stages, "One process a stage".
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from generator.schema.errors import InputError


@contextmanager
def stage_lock(folder: Path, stage: str) -> Iterator[None]:
    """Hold the lock of a stage on a run folder.

    The system lets it go when the holder dies, so a crash leaves nothing to clean up.

    Raises:
        InputError: another process has it, or the file cannot be locked.
    """
    lock = FileLock(folder / f"{stage}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise InputError(
            f"{folder}: another process is running {stage} on this run ({lock.lock_file}); wait for it, or stop it"
        ) from None
    except OSError as error:
        raise InputError(f"{lock.lock_file}: cannot be locked: {error.strerror}") from None
    try:
        yield
    finally:
        lock.release()

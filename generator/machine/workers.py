"""Where independent tasks run: in this process, in local processes, or on a Dask cluster.

All three take the same functions and arguments; tasks name their inputs and outputs by absolute paths, so that machines
of a cluster need shared storage and nothing else.

See contract: publication, "Publish".
"""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.context import ForkServerContext, ForkServerProcess
from multiprocessing.process import BaseProcess
from types import ModuleType
from typing import Any, Protocol, TypeVar

from generator.machine.memory import give_back, spare_memory
from generator.schema.errors import InputError

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
_SHARES = 3  # a process takes its names in about as many portions, so that none waits long for the last
DASK_TIMEOUT = "10s"
_AGAIN = "the site in place is as it was; publish again"
_DASK_ADDRESS = re.compile(r"(?P<scheme>tcp|tls)://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):(?P<port>[0-9]{1,5})")


class Pending(Protocol[T_co]):
    """A result that may still be on its way."""

    def result(self) -> T_co:
        """Wait for the result; raises what the task raised."""
        ...


class Workers(ABC):
    """Something that runs tasks."""

    @abstractmethod
    def submit(self, function: Callable[..., T], *arguments: Any) -> Pending[T]:
        """Run a task, now or later."""

    def each(self, task: Callable[[str], T], names: Sequence[str]) -> list[T]:
        """Run a task for every name and return the results in their order."""
        return [pending.result() for pending in [self.submit(task, name) for name in names]]


class Inline(Workers):
    """Runs each task at once, in this process."""

    def submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        """Run the task and return its finished result."""
        done: Future[T] = Future()
        done.set_result(function(*arguments))
        return done


class Pool(Workers):
    """Runs tasks in local processes."""

    def __init__(self, pool: ProcessPoolExecutor, jobs: int) -> None:
        self._pool, self._jobs = pool, jobs

    def submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        """Queue a task."""
        return self._pool.submit(_task, function, *arguments)

    def each(self, task: Callable[[str], T], names: Sequence[str]) -> list[T]:
        """Run a task for every name, several names to a process at a time: they share what the task makes once."""
        size = max(1, len(names) // (_SHARES * self._jobs))
        chunks = [names[start : start + size] for start in range(0, len(names), size)]
        pending = [self._pool.submit(_chunk, task, chunk) for chunk in chunks]
        return [found for chunk in pending for found in chunk.result()]


def _task(function: Callable[..., T], *arguments: Any) -> T:
    try:
        return function(*arguments)
    finally:
        give_back()


def _chunk(task: Callable[[str], T], names: Sequence[str]) -> list[T]:
    return [_task(task, name) for name in names]


class Cluster(Workers):
    """Runs tasks on a Dask cluster; one that loses its worker is run again elsewhere."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def submit(self, function: Callable[..., T], *arguments: Any) -> Pending[T]:
        """Send a task; the same call twice runs twice, for its work is to write files."""
        pending: Pending[T] = self._client.submit(function, *arguments, pure=False)
        return pending


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _begin() -> None:
    """Keep a worker small, and tie its life to its parent's: a killed publish leaves no process and lock."""
    spare_memory()
    if "pyarrow" in sys.modules:
        import pyarrow as pa

        pa.set_cpu_count(1)  # the processors are shared out among the workers already
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The fork server is no use as a sign: it lives as long as any worker, each of which holds its pipe.
    threading.Thread(target=_await_parent, daemon=True).start()


def _await_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _no_main() -> Iterator[None]:
    """Hide the program that is running while a worker is started.

    A worker would run it again as a module, and with it a script or notebook that calls `publish` without a main guard.
    No task needs anything of it.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


class _Worker(ForkServerProcess):
    """A process that begins without the program which started it."""

    @staticmethod
    def _Popen(process_obj: BaseProcess) -> Any:  # noqa: N802 - the name that multiprocessing gives it
        with _no_main():
            return ForkServerProcess._Popen(process_obj)


class _Workshop(ForkServerContext):
    """The context of a fork server whose processes are workers."""

    Process = _Worker


@contextmanager
def local_workers(jobs: int, *, preload: str | None = None, again: str = _AGAIN) -> Iterator[Workers]:
    """Yield workers on this machine: one process a job, or this process when there is one job.

    `preload` names the module of their tasks, which each worker then finds loaded. `again` is what a person is told to
    do where a worker was killed.
    """
    if jobs < 2:
        yield Inline()
        return
    # A fork server starts clean and early: workers never inherit threads, and load the heavy modules once.
    context = _Workshop()
    context.set_forkserver_preload([preload] if preload else [])
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin)
    try:
        for _ in range(jobs):
            pool.submit(os.getpid)
        yield Pool(pool, jobs)
    except BrokenExecutor:
        pool.shutdown()
        raise InputError(
            f"a worker process was killed, most often for lack of memory; {again} with fewer --jobs"
        ) from None
    except BaseException:
        pool.shutdown(wait=True, cancel_futures=True)
        raise
    pool.shutdown()


def checked_dask_address(text: str) -> str:
    """Return `--dask` as it stands; raises InputError unless it is an address that a scheduler can have.

    Dask's own client prints a traceback, and waits, where it cannot take an address apart.
    """
    found = _DASK_ADDRESS.fullmatch(text)
    if found is None or not 0 < int(found["port"]) < 65536:
        raise InputError(
            f"--dask {text!r}: no address of a scheduler; use tcp://HOST:PORT, as `dask scheduler` prints it"
        )
    return text


@contextmanager
def dask_workers(address: str) -> Iterator[Workers]:
    """Yield the workers of a Dask scheduler; raises InputError when it is not installed or cannot be reached."""
    try:
        from distributed import Client, KilledWorker
        from distributed.security import Security
    except ImportError:
        raise InputError("--dask: Dask is not installed here; type: pip install 'aibiasbench[dask]'") from None
    if address.startswith("tls:") and not Security().get_connection_args("client")["ssl_context"]:  # type: ignore[no-untyped-call]
        raise InputError(
            f"--dask {address}: Dask has no certificates here; set distributed.comm.tls in its configuration"
        )
    try:
        client: Any = Client(address, timeout=DASK_TIMEOUT, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise InputError(f"--dask {address}: no scheduler answers there ({error}); start `dask scheduler`") from None
    with client:
        if not client.scheduler_info()["workers"]:
            raise InputError(f"--dask {address}: the scheduler has no worker; start `dask worker {address}`")
        try:
            yield Cluster(client)
        except CancelledError:
            raise InputError(f"--dask {address}: the connection to the scheduler was lost; {_AGAIN}") from None
        except KilledWorker as error:
            raise InputError(
                f"--dask {address}: workers died, one after another, over a task ({error}); {_AGAIN}"
            ) from None

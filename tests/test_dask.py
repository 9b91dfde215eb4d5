"""publish --dask: a scheduler and two workers on loopback, one of them killed in the middle of a task."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from generator.machine import workers
from generator.publishing import build as building
from generator.publishing.publish import Options, publish
from generator.receipts.pages import write_receipts
from generator.schema.errors import InputError
from tests.programs import invoke as run
from tests.publications import _quick, contents, make_content, run_publish  # noqa: F401 - an autouse fixture

ROOT = Path(__file__).parent.parent
FLAG = "AIBIASBENCH_TEST_FLAG"


def deadly(task):
    """Write a model's receipts; the first worker to come here dies with half of its files written."""
    try:
        os.close(os.open(os.environ[FLAG], os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return write_receipts(task)
    folder = Path(task.out, "age_stance_0")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "index.html").write_text("half a pa")
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("still alive")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def cluster(count, folder):
    """A scheduler and workers as processes of their own; yields address and processes, the scheduler first."""
    address = f"tcp://127.0.0.1:{free_port()}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), FLAG: str(folder / "died"), "PYTHONWARNINGS": "ignore"}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment, "cwd": folder}
    program = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--no-dashboard", "--host", address]
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-nanny", "--no-dashboard"]
    processes = [subprocess.Popen(program, **quiet)]
    try:
        options = ["--host", "127.0.0.1", "--nthreads", "1", "--local-directory", str(folder)]
        processes += [subprocess.Popen([*worker, *options], **quiet) for _ in range(count)]
        wait_for(address, count)
        yield address, processes
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()


def wait_for(address, count):
    from distributed import Client

    deadline = time.monotonic() + 60
    while True:
        try:
            with Client(address, timeout="5s", set_as_default=False) as client:
                if count:
                    client.wait_for_workers(count, timeout=30)
                return
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.3)


class TestCluster:
    def test_a_killed_worker_costs_time_and_no_byte(self, tmp_path, monkeypatch):
        content = make_content(tmp_path / "content")
        run_publish(content, tmp_path / "plain", cache=tmp_path / "cache-plain")
        monkeypatch.setattr(building, "make_receipts", deadly)
        with cluster(2, tmp_path) as (address, processes):
            publish(Options(out=tmp_path / "dist", content=content, dask=address))
            ended = [process.poll() for process in processes[1:]]
        assert sorted(code is None for code in ended) == [False, True]
        assert contents(tmp_path / "dist") == contents(tmp_path / "plain")

    def test_a_scheduler_without_workers_is_refused(self, tmp_path):
        content = make_content(tmp_path / "content")
        with cluster(0, tmp_path) as (address, _), pytest.raises(InputError, match="the scheduler has no worker"):
            publish(Options(out=tmp_path / "dist", content=content, dask=address))
        assert not (tmp_path / "dist").exists()

    def test_a_scheduler_that_dies_is_one_line(self, tmp_path):
        lost = pytest.raises(
            InputError, match="the connection to the scheduler was lost; the site in place is as it was"
        )
        with cluster(1, tmp_path) as (address, processes), lost, workers.dask_workers(address) as found:
            pending = found.submit(time.sleep, 60)
            processes[0].kill()
            pending.result()


class TestRefusals:
    def test_nobody_answers_there(self, monkeypatch):
        monkeypatch.setattr(workers, "DASK_TIMEOUT", "1s")
        address = f"tcp://127.0.0.1:{free_port()}"
        with pytest.raises(InputError, match="no scheduler answers there"), workers.dask_workers(address):
            pass

    @pytest.mark.parametrize(
        "address",
        [
            "",
            "garbage",
            "tcp://",
            "127.0.0.1:8786",
            "foo://x:1",
            "inproc://x",
            "tcp://x:0",
            "tcp://x:65536",
            "tcp://x y:1",
        ],
    )
    def test_what_is_no_address_is_one_line(self, address):
        done = run("publish", "--dask", address)
        what = (
            f"error: --dask {address!r}: no address of a scheduler; use tcp://HOST:PORT, as `dask scheduler` prints it"
        )
        assert (done.returncode, done.stderr) == (2, f"{what}\n")

    @pytest.mark.parametrize("address", ["tcp://127.0.0.1:8786", "tls://node-1.example.org:1", "tcp://[::1]:65535"])
    def test_an_address_stays_as_it_is(self, address):
        assert workers.checked_dask_address(address) == address

    def test_certificates_that_dask_does_not_have_are_told(self):
        with (
            pytest.raises(InputError, match="Dask has no certificates here"),
            workers.dask_workers("tls://127.0.0.1:1"),
        ):
            pass

    def test_without_dask_it_says_what_to_type(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "distributed", None)
        wanted = pytest.raises(InputError, match=r"pip install 'aibiasbench\[dask\]'")
        with wanted, workers.dask_workers("tcp://127.0.0.1:1"):
            pass

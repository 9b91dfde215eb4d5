"""The fuzzer itself: it tells what was read, what was refused, and each way in which the promise can be broken."""

from __future__ import annotations

import os
import random
import signal
import time

import pytest

from generator.schema.errors import InputError
from tests.fuzz import __main__ as fuzzer
from tests.fuzz.kinds import Kind, kinds
from tests.fuzz.mutations import spoiled_bytes, spoiled_json


def raising(error):
    def read(folder):
        raise error

    return read


def make(folder):
    (folder / "file").write_bytes(b"valid")


def told(tmp_path, read, cases=2):
    """What the fuzzer says of a kind that is read so."""
    (tmp_path / "original").mkdir()
    make(tmp_path / "original")
    kind = Kind("k", make, "file", spoiled_bytes, read, [])
    names = [f"k:1:{i}" for i in range(cases)]
    return list(fuzzer.in_process(kind, tmp_path / "original", tmp_path / "home", names))


class TestOutcomes:
    def test_read_and_refused(self, tmp_path):
        assert told(tmp_path, lambda _: None) == [("k:1:0", "fine"), ("k:1:1", "fine")]

    def test_refused(self, tmp_path):
        assert told(tmp_path, raising(InputError("file: bad"))) == [("k:1:0", "refused"), ("k:1:1", "refused")]

    @pytest.mark.parametrize(
        "error", [KeyError("x"), RecursionError(), MemoryError(), UnicodeEncodeError("u", "x", 0, 1, "r")]
    )
    def test_any_other_error_is_a_fault(self, tmp_path, error):
        assert all(said.startswith(type(error).__name__) for _, said in told(tmp_path, raising(error)))

    def test_a_process_that_dies_is_a_fault_of_its_case_and_the_next_is_tried(self, tmp_path):
        found = told(tmp_path, lambda _: os.kill(os.getpid(), signal.SIGSEGV))
        assert found == [("k:1:0", "the process ended with -11"), ("k:1:1", "the process ended with -11")]

    def test_one_that_works_too_long(self, tmp_path, monkeypatch):
        monkeypatch.setattr(fuzzer, "SECONDS", 1)

        def works(_):
            while True:
                pass

        assert told(tmp_path, works, cases=1) == [("k:1:0", "more than 1 s")]

    def test_one_that_waits_too_long(self, tmp_path, monkeypatch):
        monkeypatch.setattr(fuzzer, "WAITING", 1)
        assert told(tmp_path, lambda _: time.sleep(60), cases=1) == [("k:1:0", "waits more than 1 s")]

    def test_one_that_takes_too_much(self, tmp_path):
        assert told(tmp_path, lambda _: bytearray(2 << 30), cases=1)[0][1].startswith("MemoryError")


class TestMutations:
    def test_the_same_seed_spoils_alike_and_another_does_not(self):
        data = bytes(range(256)) * 20
        first, again, other = (spoiled_bytes(data, random.Random(seed)) for seed in ("a", "a", "b"))
        assert first == again != other

    def test_json_stays_json_where_it_is_spoiled_by_value(self):
        found = {spoiled_json(b'{"a": [1, {"b": "c"}]}', random.Random(i)) for i in range(200)}
        assert len(found) > 100


def test_every_kind_of_file_is_read_before_it_is_spoiled(tmp_path):
    """A kind whose valid file is refused would prove nothing; publications are left to the fuzzer, for their time."""
    tried = [kind for kind in kinds() if not kind.name.startswith("data/")]
    assert len(tried) == 17
    for number, kind in enumerate(tried):
        folder = tmp_path / str(number)
        folder.mkdir()
        kind.make(folder)
        kind.after(folder)
        kind.read(folder)

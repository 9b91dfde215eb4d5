"""Archives that a stranger sends: `load` reads them within bounds, or says in a line what is wrong.

See contract: publication, "Archives".
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import random
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pytest

from generator.reading import archive
from generator.reading.run import load
from generator.schema.errors import InputError

MANIFEST = json.dumps({"files": [], "run": {}, "receipts": []}).encode()
PACKED = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


def refused(path: Path) -> str:
    """What `load` says of an archive."""
    with pytest.raises(InputError) as error:
        load(path)
    return error.value.faults[0]


def tape(*entries: tuple[tarfile.TarInfo, bytes]) -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as made:
        for entry, data in entries:
            entry.size = len(data)
            made.addfile(entry, io.BytesIO(data))
    return sink.getvalue()


def zstd(path: Path, parts: Iterable[bytes]) -> Path:
    with pa.CompressedOutputStream(str(path), "zstd") as packed:
        for part in parts:
            packed.write(part)
    return path


def header(kind: bytes, size: int) -> bytes:
    entry = tarfile.TarInfo("x")
    entry.type, entry.size = kind, size
    return entry.tobuf(tarfile.GNU_FORMAT)


class TestSize:
    def test_a_small_file_that_stands_for_gigabytes(self, tmp_path: Path) -> None:
        path = zstd(tmp_path / "a.tar.zst", (bytes(1 << 20) for _ in range(100)))
        assert path.stat().st_size < 10_000
        most = archive.most_unpacked(path.stat().st_size)
        assert most < 66 << 20
        assert f"a.tar.zst: unpacks to more than {most:,} bytes" in refused(path)

    @pytest.mark.parametrize("ending", PACKED)
    def test_in_every_way_of_packing(self, tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(archive, "_FREE", 1 << 20)
        monkeypatch.setattr(archive, "_GROWTH", 1)
        path = tmp_path / f"a.tar.{ending}"
        path.write_bytes(PACKED[ending](tape((tarfile.TarInfo("manifest.json"), bytes(3 << 20)))))
        assert "unpacks to more than 1,0" in refused(path)

    @pytest.mark.parametrize("kind", [b"x", b"g", b"L", b"K"])
    def test_a_name_or_note_without_end_is_not_read(self, tmp_path: Path, kind: bytes) -> None:
        # Python sets aside what such a header says, here a petabyte.
        (tmp_path / "a.tar").write_bytes(header(kind, 1 << 50) + bytes(1024))
        assert "a name or note of 1,125,899,906,842,624 bytes inside; at most 1,048,576" in refused(tmp_path / "a.tar")

    def test_files_without_number(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(archive, "MOST_MEMBERS", 100)
        (tmp_path / "a.tar").write_bytes(tape(*((tarfile.TarInfo("x"), b"") for _ in range(101))))
        assert "more than 100 files inside" in refused(tmp_path / "a.tar")


class TestDamage:
    @pytest.mark.parametrize("way", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    @pytest.mark.parametrize("at", [0, 5, 10])
    def test_a_zip(self, tmp_path: Path, way: int, at: int) -> None:
        path = tmp_path / "a.zip"
        with zipfile.ZipFile(path, "w", way) as packed:
            packed.writestr("manifest.json", MANIFEST * 20)
        data = bytearray(path.read_bytes())
        start = 30 + len("manifest.json") + (9 if way == zipfile.ZIP_LZMA else 0) + at
        data[start : start + 4] = b"\xff" * 4
        path.write_bytes(data)
        assert refused(path).startswith(f"{path}: manifest.json cannot be unpacked: ")

    @pytest.mark.parametrize("ending", PACKED)
    @pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
    def test_a_packed_tar(self, tmp_path: Path, ending: str, share: float) -> None:
        path = tmp_path / f"a.tar.{ending}"
        whole = PACKED[ending](
            tape((tarfile.TarInfo("manifest.json"), MANIFEST), (tarfile.TarInfo("y"), random.Random(1).randbytes(9000)))
        )
        at = int(len(whole) * share)
        path.write_bytes(whole[:at] + b"\xff" * 8 + whole[at + 8 :])
        assert refused(path).startswith(f"{path}: damaged, or no room to unpack it: ")

    def test_another_file_of_the_same_name_is_read_anew(self, tmp_path: Path) -> None:
        path = tmp_path / "a.tar.gz"
        path.write_bytes(gzip.compress(tape((tarfile.TarInfo("other.json"), MANIFEST))))
        assert "no published run is there" in refused(path)
        path.write_bytes(gzip.compress(tape((tarfile.TarInfo("manifest.json"), MANIFEST))))
        assert "simulated: Field required" in refused(path)


class TestKinds:
    @pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE])
    @pytest.mark.parametrize("target", ["manifest.json", "/etc/passwd", "../../x"])
    def test_a_link_or_device_is_no_file(self, tmp_path: Path, kind: bytes, target: str) -> None:
        entry = tarfile.TarInfo("manifest.json")
        entry.type, entry.linkname = kind, target
        (tmp_path / "a.tar").write_bytes(tape((entry, b"")))
        assert "no published run is there" in refused(tmp_path / "a.tar")

    def test_a_pipe_is_not_waited_for(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "a.tar")
        assert "no such folder or archive" in refused(tmp_path / "a.tar")

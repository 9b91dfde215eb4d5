"""The tree beside `dist/`: places that take none, and disks that run full, are told by name.

See contract: publication, "Swapping sites".
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from generator.machine import site_tree as trees
from generator.schema.errors import InputError

FULL = Path("/dev/full")  # every write to it finds no space
PROC = Path("/proc")


class TestPlaces:
    @pytest.mark.skipif(not PROC.is_dir(), reason="no /proc here")
    @pytest.mark.parametrize("name", ["site", "a/b/site"])
    def test_where_only_the_kernel_makes_files_is_no_place(self, name):
        out = PROC / name
        with (
            pytest.raises(InputError, match=f"^{out}: {out.parent} takes no new site: .*with --out$"),
            trees.locked(out),
        ):
            pass

    def test_a_folder_that_may_not_be_written_is_named(self, tmp_path, monkeypatch):
        def refuse(*_, **__):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(tmp_path / ".dist.lock"))

        monkeypatch.setattr(trees.FileLock, "acquire", refuse)
        with pytest.raises(InputError) as caught, trees.locked(tmp_path / "dist"):
            pass
        assert str(caught.value) == (
            f"{tmp_path}/dist: {tmp_path} takes no new site: Read-only file system;"
            " give a folder that may be written with --out"
        )

    def test_a_lock_that_another_publish_holds_is_told_from_that(self, tmp_path):
        with trees.locked(tmp_path / "dist"), pytest.raises(InputError, match="another publish is writing there"):  # noqa: SIM117
            with trees.locked(tmp_path / "dist"):
                pass

    @pytest.mark.skipif(not PROC.is_mount(), reason="no mount point here")
    def test_a_mount_point_cannot_be_replaced(self):
        with pytest.raises(InputError, match="a mount point, which no new site can replace"):
            trees.check_site(PROC)


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")
class TestFullDisk:
    def fill(self, out):
        with pytest.raises(InputError) as caught, trees.fresh_tree(out):
            FULL.write_bytes(b"x")
        return str(caught.value)

    def test_the_tree_is_named_where_its_disk_is_full(self, tmp_path, monkeypatch):
        monkeypatch.setattr(trees, "_ROOM", float("inf"))
        assert self.fill(tmp_path / "dist") == (
            f"{tmp_path}/.dist.new: No space left on device while the new site was made; {tmp_path}/dist stays as it"
            " was. Make room there, choose another --out, or publish with --mode folded"
        )

    def test_another_disk_is_not_taken_for_it(self, tmp_path, monkeypatch):
        monkeypatch.setattr(trees, "_ROOM", -1)
        assert self.fill(tmp_path / "dist").startswith("the cache folder, or the one for temporary files: No space")

    def test_nothing_is_left_of_the_new_tree_and_the_old_one_stays(self, tmp_path):
        (tmp_path / "dist").mkdir()
        (tmp_path / "dist" / "index.html").write_text("old")
        self.fill(tmp_path / "dist")
        assert [path.name for path in tmp_path.rglob("*")] == ["dist", "index.html"]

    def test_an_error_of_another_kind_passes(self, tmp_path):
        with pytest.raises(FileNotFoundError), trees.fresh_tree(tmp_path / "dist"):
            (tmp_path / "none").read_bytes()


class TestLinks:
    """Nothing of a site is a symbolic link: it would show other bytes tomorrow, and lead out of the tree."""

    @pytest.fixture
    def tree(self, tmp_path):
        for name in ("old/runs/a", "new"):
            (tmp_path / name).mkdir(parents=True)
        (tmp_path / "secret").write_bytes(b"x")
        (tmp_path / "old/runs/a/page.html").symlink_to(tmp_path / "secret")
        (tmp_path / "old/runs/a/folder").symlink_to(tmp_path)
        return trees.Tree(tmp_path / "new", tmp_path / "old")

    def test_a_run_is_not_kept_with_one_in_it(self, tree):
        with pytest.raises(InputError, match=r"runs/a/(page\.html|folder): a symbolic link, which no publish made"):
            tree.keep("runs/a")

    def test_a_file_is_not_kept_when_it_is_one(self, tree):
        with pytest.raises(InputError, match=r"page\.html: a symbolic link"):
            tree.keep_file("runs/a/page.html")

    def test_one_with_the_right_bytes_is_written_anew(self, tree):
        tree.write("runs/a/page.html", b"x")
        assert not (tree.root / "runs/a/page.html").is_symlink()
        assert (tree.root / "runs/a/page.html").read_bytes() == b"x"
        tree.settle("runs/a")
        assert not (tree.root / "runs/a/page.html").is_symlink()

"""Hosts: what fits where, which mode is chosen, and whether there is room before anything is written."""

from __future__ import annotations

import re
import shlex
from collections import namedtuple
from pathlib import Path

import pytest
from click.testing import CliRunner

from generator.commands.publish import HOST_NAMES, command
from generator.publishing import hosts
from generator.publishing.hosts import HOSTS, Host, Size, check_space, faults, fitting_mode, next_step
from generator.schema.errors import InputError
from tests.publications import _quick, contents, make_content, run_publish  # noqa: F401 - an autouse fixture

FULL = {"row": Size(62_000, 720_000_000), "folded": Size(2_300, 200_000_000), "files": Size(400, 100_000_000)}
# 1,000 models, 132 concepts.
CROWD = {"row": Size(1_500_000, 10**10), "folded": Size(138_000, 5 * 10**9), "files": Size(6_000, 10**9)}


class TestFaults:
    def test_the_command_offers_every_host(self):
        assert tuple(HOSTS) == HOST_NAMES

    def test_plain_takes_everything(self):
        assert faults(HOSTS["plain"], Size(10_000_000, 10**13), 10**12) == []

    def test_each_limit_is_named_with_both_numbers(self):
        host = Host("small", files=10, bytes=2_000_000, file_bytes=1_000_000)
        assert faults(host, Size(10, 2_000_000), 1_000_000) == []
        assert faults(host, Size(11, 3_000_000), 1_500_000) == [
            "11 files, small takes 10",
            "3 MB, small takes 2 MB",
            "a file of 1.5 MB, small takes 1.0 MB",
        ]


class TestMode:
    @pytest.mark.parametrize(
        ("host", "mode"),
        [("plain", "row"), ("github-pages", "row"), ("cloudflare-pages", "folded"), ("netlify", "row"), ("s3", "row")],
    )
    def test_a_page_a_row_wherever_it_fits(self, host, mode):
        assert fitting_mode(HOSTS[host], FULL) == mode

    def test_many_models_have_no_page_of_a_set_where_there_is_no_room_for_it(self):
        assert fitting_mode(HOSTS["cloudflare-pages"], CROWD) == "files"
        assert fitting_mode(HOSTS["plain"], CROWD) == "row"

    def test_github_pages_folds_above_a_gigabyte(self):
        sizes = {"row": Size(62_000, 1_000_000_001), "folded": FULL["folded"], "files": FULL["files"]}
        assert fitting_mode(HOSTS["github-pages"], sizes) == "folded"

    def test_a_mode_that_was_asked_for_is_kept_or_refused(self):
        assert fitting_mode(HOSTS["plain"], FULL, "folded") == "folded"
        with pytest.raises(
            InputError, match=r"cloudflare-pages, row mode: 62,000 files, cloudflare-pages takes 20,000"
        ):
            fitting_mode(HOSTS["cloudflare-pages"], FULL, "row")

    def test_nothing_fits_says_all(self):
        sizes = {"row": Size(62_000, 1), "folded": Size(21_000, 1), "files": Size(20_001, 1)}
        with pytest.raises(InputError) as caught:
            fitting_mode(HOSTS["cloudflare-pages"], sizes)
        assert len(caught.value.faults) == 4
        assert "folded mode: 21,000 files" in caught.value.faults[1]
        assert "files mode: 20,001 files" in caught.value.faults[2]


class TestNextStep:
    def test_each_figure_stands_beside_the_limit_of_the_host(self):
        host = Host(
            "small", files=1_000, bytes=2_000_000, advice="be quick.", upload="send {out} NAME", page="small.md"
        )
        assert next_step(host, Path("dist"), Size(999, 1_234_567), 56_789) == [
            "small: 999 files (limit 1,000), 1.2 MB (limit 2.0 MB), largest file 0.1 MB (no limit known)",
            "Note: be quick.",
            "Next: send dist NAME   (docs/hosts/small.md)",
        ]

    @pytest.mark.parametrize("name", [name for name in HOST_NAMES if HOSTS[name].upload])
    def test_the_command_takes_any_folder_as_one_word(self, name):
        step = next_step(HOSTS[name], Path("my site; rm x"), Size(1, 1), 1)[-1]
        words = shlex.split(step.removeprefix("Next: ").partition("   (")[0])
        assert [word.rstrip("/") for word in words if "my site" in word] == ["my site; rm x"]

    @pytest.mark.parametrize("name", [name for name in HOST_NAMES if HOSTS[name].upload])
    def test_the_page_of_the_host_gives_the_same_command(self, name):
        page = (Path(__file__).parent.parent / "docs" / "hosts" / HOSTS[name].page).read_text(encoding="utf-8")
        command = HOSTS[name].upload.format(out="dist")
        assert command in page.replace("/var/www/bias/", "/var/www/SITE/")

    def test_the_table_of_hosts_gives_the_limits_that_are_kept(self):
        text = (Path(__file__).parent.parent / "docs" / "hosts" / "README.md").read_text(encoding="utf-8")
        rows = {c[2].strip(" `"): c for c in (line.split("|") for line in text.splitlines()) if len(c) > 7}
        for name, host in HOSTS.items():
            files, size, largest, headers, redirects = (cell.strip() for cell in rows[name][3:8])
            assert (f"{host.files:,}" == files) if host.files else not re.match(r"\d", files)
            assert (size == f"{host.bytes / 1e9:.0f} GB") if host.bytes else not re.match(r"\d", size)
            mebi = host.file_bytes and f"{host.file_bytes / 2**20:.0f} MiB"
            mega = host.file_bytes and f"{host.file_bytes / 1e6:.0f} MB"
            assert (largest in (mebi, mega)) if host.file_bytes else not re.match(r"\d", largest)
            assert name == "plain" or (headers == "yes") == host.reads_headers
            assert name == "plain" or redirects.startswith("yes") == bool(host.redirects)


Facts = namedtuple("Facts", "f_bavail f_frsize f_files f_favail")


class TestSpace:
    def test_enough_of_both_is_silent(self, tmp_path):
        check_space(tmp_path, Size(10, 1000))

    def test_too_few_bytes(self, tmp_path, monkeypatch):
        monkeypatch.setattr(hosts.os, "statvfs", lambda _: Facts(1000, 4096, 100, 100))
        with pytest.raises(InputError, match=r"4 MB free, about 11 MB needed for 10 files"):
            check_space(tmp_path, Size(10, 10_000_000))

    def test_too_few_inodes(self, tmp_path, monkeypatch):
        monkeypatch.setattr(hosts.os, "statvfs", lambda _: Facts(10**9, 4096, 1000, 99))
        with pytest.raises(InputError, match="99 inodes free, 100 needed"):
            check_space(tmp_path, Size(100, 1000))

    def test_a_file_system_without_inode_numbers_is_no_obstacle(self, tmp_path, monkeypatch):
        monkeypatch.setattr(hosts.os, "statvfs", lambda _: Facts(10**9, 4096, 0, 0))
        check_space(tmp_path, Size(100, 1000))


class TestPublish:
    def test_the_host_decides_and_the_count_comes_before_the_build(self, tmp_path, monkeypatch):
        content = make_content(tmp_path / "content")
        monkeypatch.setitem(HOSTS, "cloudflare-pages", Host("cloudflare-pages", files=450))
        lines = []
        run_publish(content, tmp_path / "row", host="plain", cache=tmp_path / "a")
        from generator.publishing.publish import Options, publish

        publish(Options(out=tmp_path / "folded", content=content, host="cloudflare-pages"), lines.append)
        rows, folded = contents(tmp_path / "row"), contents(tmp_path / "folded")
        assert [p for p in rows if p.endswith("/direct.g0.0.html")] != []
        assert [p for p in folded if p.endswith("/direct.g0.0.html")] == []
        counts = [line for line in lines if " mode: about " in line]
        assert len(counts) == 3
        assert "cloudflare-pages takes 450" in counts[0]
        assert counts[1].endswith("fits cloudflare-pages")
        assert lines.index(counts[1]) < lines.index("run first: tables, charts and pages: done")

    def test_estimates_come_near_what_is_written(self, tmp_path):
        content = make_content(tmp_path / "content")
        lines = []
        from generator.publishing.publish import Options, publish

        outcome = publish(Options(out=tmp_path / "dist", content=content), lines.append)
        text = next(line for line in lines if line.startswith("row mode: about "))
        said = int(text.removeprefix("row mode: about ").partition(" files")[0].replace(",", ""))
        assert abs(said - outcome.files) < 150

    def test_no_room_leaves_everything_as_it_is(self, tmp_path, monkeypatch):
        content = make_content(tmp_path / "content")
        monkeypatch.setattr(hosts.os, "statvfs", lambda _: Facts(1, 4096, 10, 10))
        with pytest.raises(InputError, match="MB free"):
            run_publish(content, tmp_path / "dist")
        assert [p.name for p in tmp_path.iterdir() if "dist" in p.name and p.is_dir()] == []

    def test_it_ends_with_the_next_step_and_the_figures_of_the_tree_also_when_nothing_was_to_do(self, tmp_path):
        content, out = make_content(tmp_path / "content"), tmp_path / "dist"
        words = ["--content", str(content), "--out", str(out), "--host", "nginx", "--jobs", "1"]
        first, second = (CliRunner().invoke(command, words, catch_exceptions=False).stdout for _ in range(2))
        sizes = [p.stat().st_size for p in out.rglob("*") if p.is_file()]
        figures = f"nginx: {len(sizes):,} files (no limit known), {sum(sizes) / 1e6:,.1f} MB (no limit known)"
        for said in (first, second):
            *_, line, note, step = said.splitlines()
            assert line == f"{figures}, largest file {max(sizes) / 1e6:,.1f} MB (no limit known)"
            assert note.startswith("Note: ")
            assert step.startswith(f"Next: rsync -a --delete --delay-updates {out}/ ")
        assert "is up to date" in second

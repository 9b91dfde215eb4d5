"""content/site.toml: what it must hold, and what the operator is told when it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from generator.commands.publish import used
from generator.edition.settings import HOST_NAMES, SITE_FILE, PublishSettings, checked_base_url, read_site
from generator.publishing.hosts import HOSTS
from generator.schema.errors import InputError

ROOT = Path(__file__).parent.parent
GOOD = (ROOT / SITE_FILE).read_text(encoding="utf-8")


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "site.toml"
    path.write_text(text, encoding="utf-8")
    return path


def faults_of(tmp_path: Path, text: str) -> tuple[str, ...]:
    with pytest.raises(InputError) as caught:
        read_site(written(tmp_path, text))
    return caught.value.faults


class TestReadSite:
    def test_the_repository_s_own_file_is_read(self):
        site = read_site(ROOT / SITE_FILE)
        assert (site.title, site.data_licence.name) == ("AIBiasBench", "CC BY 4.0")

    def test_a_missing_file_says_what_it_is_for(self, tmp_path):
        with pytest.raises(InputError, match=r"nothing\.toml: not found; it names the site's title"):
            read_site(tmp_path / "nothing.toml")

    def test_broken_toml_names_the_file_and_the_place(self, tmp_path):
        (fault,) = faults_of(tmp_path, "title = \n")
        assert fault.startswith(f"{tmp_path / 'site.toml'}: not TOML: ")
        assert "line 1" in fault

    def test_an_unknown_key_is_refused_by_name(self, tmp_path):
        (fault,) = faults_of(tmp_path, 'colour = "red"\n' + GOOD)
        assert fault == f"{tmp_path / 'site.toml'}: colour: Extra inputs are not permitted (saw 'red')"

    def test_every_missing_key_is_listed(self, tmp_path):
        text = "\n".join(line for line in GOOD.splitlines() if not line.startswith(("title", "tagline")))
        found = faults_of(tmp_path, text)
        assert [fault.split(": ")[1] for fault in found] == ["title", "tagline"]

    def test_a_file_that_is_no_text_or_no_file_is_named(self, tmp_path):
        path = tmp_path / "site.toml"
        path.write_bytes(b"title = '\xff'")
        with pytest.raises(InputError, match=r"site\.toml: not UTF-8 at byte 9"):
            read_site(path)
        with pytest.raises(InputError, match="cannot be read: Is a directory"):
            read_site(tmp_path)

    def test_an_address_that_is_none_is_refused(self, tmp_path):
        (fault,) = faults_of(tmp_path, GOOD.replace('code_url = ""', 'code_url = "https://[x"'))
        assert "code_url: 'https://[x' is no address" in fault

    @pytest.mark.parametrize("key", ["contact_url", "mismatch_url", "code_url"])
    def test_an_address_that_would_run_something_is_refused(self, tmp_path, key):
        text = GOOD.replace(f'{key} = ""', f'{key} = "javascript:alert(1)"')
        (fault,) = faults_of(tmp_path, text)
        place = f"{tmp_path / 'site.toml'}: {key}: 'javascript:alert(1)'"
        assert fault == f"{place} is no address; use https://…, mailto:… or an empty string"


class TestCheckedBaseUrl:
    @pytest.mark.parametrize(
        ("given", "kept"),
        [("https://example.org/", "https://example.org"), ("http://127.0.0.1:8000/a/b", "http://127.0.0.1:8000/a/b")],
    )
    def test_an_absolute_address_loses_its_last_slash(self, given, kept):
        assert checked_base_url(given) == kept

    @pytest.mark.parametrize(
        "given",
        [
            "example.org",
            "ftp://example.org",
            "https://",
            "https://a.org/?x=1",
            "https://a.org/#x",
            "https://[x",
            'https://a.org/"><script>',
            "https://a.org/a b",
            "https://a.org/\n",
            "https://é.org",
        ],
    )
    def test_anything_else_is_refused(self, given):
        with pytest.raises(InputError, match="use an absolute address such as"):
            checked_base_url(given)


class TestPublishSettings:
    def test_without_them_a_publish_is_what_it_was(self, tmp_path):
        assert read_site(written(tmp_path, GOOD)).publish == PublishSettings()

    def test_each_is_read(self, tmp_path):
        own = '[publish]\nbase_url = "https://x.example/b/"\nhost = "s3"\nmode = "folded"\n'
        own += "preview = true\nwithhold = true\n"
        found = read_site(written(tmp_path, GOOD + "\n" + own)).publish
        assert found == PublishSettings(
            base_url="https://x.example/b/", host="s3", mode="folded", preview=True, withhold=True
        )

    def test_the_hosts_are_those_whose_limits_are_known(self):
        assert set(HOST_NAMES) == set(HOSTS)

    @pytest.mark.parametrize(
        ("line", "fault"),
        [
            ('base_url = "x.example"', "site.toml: publish.base_url 'x.example': use an absolute address"),
            ('host = "moon"', "publish.host"),
            ('mode = "rows"', "publish.mode"),
            ('hosts = "s3"', "publish.hosts"),
        ],
    )
    def test_a_bad_one_is_named(self, tmp_path, line, fault):
        with pytest.raises(InputError) as caught:
            read_site(written(tmp_path, GOOD + f"\n[publish]\n{line}\n"))
        assert any(fault in found for found in caught.value.faults)

    def test_what_is_used_is_said_with_what_an_option_decided(self):
        settings = PublishSettings(host="s3", mode="row")
        assert used(settings, {"mode"}) == (
            "publishing with host s3, mode row (by option), base_url none, preview no, withhold no"
        )

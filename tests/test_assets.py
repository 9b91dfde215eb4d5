"""The site's own files: each under a name that its content decides, modules naming one another by those names."""

from __future__ import annotations

import hashlib
import re

import pytest

from generator.html import assets as hashed
from generator.html.assets import PARQUET_READER, STATIC, asset_files, assets
from generator.machine.site_tree import Tree
from generator.publishing.build import _keep_assets
from generator.schema.errors import InputError

NAMED = re.compile(r'from "(\./[^"]+)"')


@pytest.fixture
def static(monkeypatch, tmp_path):
    """A folder of static files of one's own; a call writes some, and returns what they become."""
    monkeypatch.setattr(hashed, "STATIC", tmp_path)

    def written(files):
        for name, text in {PARQUET_READER: "", **files}.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text)
        assets.cache_clear()
        return assets()

    yield written
    assets.cache_clear()


class TestAssets:
    def test_each_has_a_name_that_its_content_decides(self):
        for asset in assets().values():
            assert hashlib.sha256(asset.data).hexdigest()[:10] in asset.path
            assert asset.path.startswith("assets/")

    def test_every_static_file_is_one(self):
        files = {p.relative_to(STATIC).as_posix() for p in STATIC.rglob("*") if p.is_file()}
        assert set(assets()) == files
        assert len(list(asset_files())) == len(files)

    def test_no_style_sheet_loads_from_elsewhere(self):
        for name, asset in assets().items():
            if name.endswith(".css"):
                text = asset.data.decode()
                assert not re.search(r"@import|https?://|url\(", text), name


MODULES = {
    "explorer/start.js": 'import { a } from "./rows.js";\nimport { b } from "../words.js";\na(b);\n',
    "explorer/rows.js": 'import {\n  b,\n} from "../words.js";\nexport const a = b;\n',
    "words.js": 'export const b = "from \\"./rows.js\\"";\n',
}


class TestModules:
    def test_an_import_names_the_other_module_as_it_is_named_on_the_site(self, static):
        made = static(MODULES)
        rows, words = (made[name].path.replace("assets/", "./") for name in ("explorer/rows.js", "words.js"))
        assert NAMED.findall(made["explorer/start.js"].data.decode()) == [rows, words]
        assert NAMED.findall(made["explorer/rows.js"].data.decode()) == [words]
        assert rows.startswith("./explorer-rows.")

    def test_a_changed_module_renames_every_module_above_it_and_no_other(self, static):
        before = {name: asset.path for name, asset in static(MODULES).items()}
        rows = MODULES["explorer/rows.js"].replace("= b", "= b + 1")
        after = {name: asset.path for name, asset in static({"explorer/rows.js": rows}).items()}
        assert {name for name in before if before[name] != after[name]} == {"explorer/rows.js", "explorer/start.js"}

    def test_a_circle_is_named(self, static):
        files = {"a.js": 'import { b } from "./b.js";\n', "b.js": 'import { a } from "./a.js";\n'}
        with pytest.raises(ValueError, match=r"a\.js -> b\.js -> a\.js"):
            static(files)

    def test_every_import_of_the_site_s_own_modules_is_an_asset(self):
        known = {asset.path for asset in assets().values()}
        own = [asset for name, asset in assets().items() if name.endswith(".js")]
        named = [f"assets/{found[2:]}" for asset in own for found in NAMED.findall(asset.data.decode())]
        assert len(named) > 10
        assert set(named) <= known

    def test_a_page_that_stays_keeps_all_modules_that_it_loads(self, static, tmp_path_factory):
        old, new = tmp_path_factory.mktemp("old"), tmp_path_factory.mktemp("new")
        made = static({**MODULES, "alone.js": ""})
        for path, data in asset_files():
            (old / path).parent.mkdir(exist_ok=True)
            (old / path).write_bytes(data)
        _keep_assets(Tree(new, old), {made["explorer/start.js"].path, "assets/gone.0123456789.js"})
        kept = {p.relative_to(new).as_posix() for p in new.rglob("*.js")}
        assert kept == {made[name].path for name in MODULES}


def test_a_missing_parquet_reader_names_the_command_that_builds_it(monkeypatch, tmp_path):
    (tmp_path / "site.css").write_text("")
    monkeypatch.setattr("generator.html.assets.STATIC", tmp_path)
    hashed.assets.cache_clear()
    try:
        with pytest.raises(InputError, match="make assets"):
            hashed.assets()
    finally:
        hashed.assets.cache_clear()

"""What the build does beyond pyproject.toml.

A wheel is refused when it would lack the browser's Parquet reader, which `make assets` bundles from npm and no clone
has: such a wheel installs, and then cannot publish. Folders that hold files alone are named as what they are, so that
the build does not take them for packages that somebody forgot.
"""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.errors import SetupError

READER = Path("site_templates/static/vendor/parquet.js")
FILES = {
    "generator.content": ("content", "bank", "pages"),
    "generator.site_templates": ("site_templates", "static"),
    "harness.audit": ("harness/audit", "audit_page"),
    "harness.starter": ("harness/starter", "benchmark"),
}


def folders_of_files() -> list[str]:
    """Return the dotted name of every folder below those that hold files alone."""
    found = []
    for package, (folder, *parts) in FILES.items():
        for part in parts:
            below = [Path(folder, part), *Path(folder, part).rglob("*")]
            names = [p.relative_to(folder).as_posix() for p in below if p.is_dir() and p.name != "__pycache__"]
            found += [f"{package}.{name.replace('/', '.')}" for name in names]
    return sorted(found)


class BuildWithReader(build_py):
    """Copies the packages, once the reader is there; an editable installation finds it when it was built later."""

    def finalize_options(self) -> None:
        """Take the folders of files along."""
        super().finalize_options()
        self.packages = [*self.packages, *folders_of_files()]

    def run(self) -> None:
        """Refuse to go on without the reader."""
        if not self.editable_mode and not READER.is_file():
            raise SetupError(f"{READER} is not built yet, and a wheel without it cannot publish; type: make assets")
        super().run()


setup(cmdclass={"build_py": BuildWithReader})

"""Raises if the wheel or the sdist lacks something: python scripts/package_contents.py WHEEL SDIST."""

import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
IN_SDIST = ("src", "tests", "docs", "examples", "studies", "benchmarks", "scripts")


def files_under(*folders: str) -> set[str]:
    """Returns the files of the project that are to be packed."""
    found = (path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file())
    return {str(path.relative_to(ROOT)) for path in found if "__pycache__" not in path.parts}


def missing_in_wheel(wheel: str) -> set[str]:
    """Returns what the wheel lacks of the package and its studies."""
    held = set(zipfile.ZipFile(wheel).namelist())
    package = {name.removeprefix("src/") for name in files_under("src")}
    studies = {f"coterie/{name}" for name in files_under("studies")}
    return (package | studies) - held


def missing_in_sdist(sdist: str) -> set[str]:
    """Returns what the sdist lacks of what its tests need."""
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    return files_under(*IN_SDIST) - held


if __name__ == "__main__":
    lacking = missing_in_wheel(sys.argv[1]) | missing_in_sdist(sys.argv[2])
    if lacking:
        sys.exit(f"not packed: {', '.join(sorted(lacking))}")

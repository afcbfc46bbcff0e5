"""Methods of one's own go along: a node needs no file of them."""

import sys
import sysconfig
from collections.abc import Mapping, Sequence
from importlib.abc import ExecutionLoader
from importlib.util import decode_source, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

from coterie.runs.learners import found_method
from coterie.runs.study import Study


def sources_of(study: Study) -> dict[str, bytes]:
    """Returns the Python files of a study's own methods, by place: their package, or the files beside their module.

    What is installed on this machine is left out, for it is to be installed on nodes too.
    """
    found: dict[str, bytes] = {}
    for policy in study.policies:
        if ":" in policy.policy:
            found_method(policy.policy)
            found.update(_files_of(sys.modules[policy.policy.partition(":")[0].partition(".")[0]]))
    return found


def _files_of(module: ModuleType) -> dict[str, bytes]:
    if module.__file__ is None or _is_installed(Path(module.__file__)):
        return {}
    folder = Path(module.__file__).parent
    root, files = (
        (folder.parent, folder.rglob("*.py")) if hasattr(module, "__path__") else (folder, folder.glob("*.py"))
    )
    return {file.relative_to(root).as_posix(): file.read_bytes() for file in files}


def _is_installed(file: Path) -> bool:
    return any(file.is_relative_to(sysconfig.get_path(name)) for name in ("purelib", "platlib", "stdlib"))


class SentModules(ExecutionLoader):
    """Finds modules among files that were sent along, as if they lay in a folder.

    Args:
        files: Python files by their places.

    Examples:
        >>> sys.meta_path.insert(0, SentModules({"sent_along.py": b"answer = 42"}))
        >>> from sent_along import answer
        >>> answer, type(sys.meta_path.pop(0)).__name__
        (42, 'SentModules')
    """

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:  # noqa: ARG002
        """Returns where a module is, if it is among the files."""
        return spec_from_loader(fullname, self) if self._place(fullname) else None

    def _place(self, name: str) -> str | None:
        place = name.replace(".", "/")
        return next((file for file in (f"{place}/__init__.py", f"{place}.py") if file in self._files), None)

    def get_filename(self, fullname: str) -> str:
        """Returns the place of a module's file."""
        place = self._place(fullname)
        if place is None:
            raise ImportError(f"{fullname} was not sent along", name=fullname)
        return place

    def get_source(self, fullname: str) -> str:
        """Returns what the file holds."""
        return decode_source(self._files[self.get_filename(fullname)])

    def is_package(self, fullname: str) -> bool:
        """Returns whether it is the first file of a folder."""
        return self.get_filename(fullname).endswith("/__init__.py")

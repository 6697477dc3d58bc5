"""`Directory`: the files of a package, as a tree."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flambeau.package.glob_group import GlobGroup, GlobPattern


class Directory:
    """A folder of a package; it prints as a tree.

    >>> folder = Directory("package", True)
    >>> folder._add_file("models/net.py")
    >>> folder.has_file("models/net.py"), folder.has_file("other.py")
    (True, False)
    """

    def __init__(self, name: str, is_dir: bool):
        self.name, self.is_dir = name, is_dir
        self.children: dict[str, Directory] = {}

    def _add_file(self, file_path: str) -> None:
        *folders, last = file_path.split("/")
        place = self
        for folder in folders:
            place = place.children.setdefault(folder, Directory(folder, True))
        place.children[last] = Directory(last, False)

    def has_file(self, filename: str) -> bool:
        """Is there a file (or folder) of that path?"""
        place: Any = self
        for part in filename.split("/"):
            place = place.children.get(part)
            if place is None:
                return False
        return True

    def _lines(self, indent: str) -> list[str]:
        found = [f"{self.name}\n"]
        folders = sorted((c for c in self.children.values() if c.is_dir), key=lambda c: c.name)
        files = sorted((c for c in self.children.values() if not c.is_dir), key=lambda c: c.name)
        entries = [*folders, *files]
        for i, child in enumerate(entries):
            last = i == len(entries) - 1
            first, *rest = child._lines(indent)
            found.append(("└── " if last else "├── ") + first)
            found += [("    " if last else "│   ") + line for line in rest]
        return found

    def __str__(self) -> str:
        first, *rest = self._lines("")
        return "─── " + first + "".join("    " + line for line in rest)


def structure(name: str, files: Iterable[str], include: GlobPattern, exclude: GlobPattern
              ) -> Directory:
    """The tree of the files that match."""
    group = GlobGroup(include, exclude=exclude, separator="/")
    top = Directory(name, True)
    for file in files:
        if group.matches(file):
            top._add_file(file)
    return top


__all__ = ["Directory"]

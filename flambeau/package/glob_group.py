"""`GlobGroup`: patterns of dotted names."""
from __future__ import annotations

import re
from collections.abc import Iterable

GlobPattern = str | Iterable[str]


class GlobGroup:
    """Names that match one of some patterns, and none of others. `*` stands for a part of one
    segment, `**` for any number of whole segments.

    >>> group = GlobGroup("models.**", exclude="models.*.test")
    >>> group.matches("models.a.b"), group.matches("models.a.test")
    (True, False)
    """

    def __init__(self, include: GlobPattern, *, exclude: GlobPattern = (), separator: str = "."):
        self._dbg = f"GlobGroup(include={include}, exclude={exclude})"
        self.separator = separator
        self.include = self._patterns(include)
        self.exclude = self._patterns(exclude)

    def __str__(self) -> str:
        return self._dbg

    __repr__ = __str__

    def matches(self, candidate: str) -> bool:
        """Does a name match?"""
        candidate = self.separator + candidate
        return any(p.fullmatch(candidate) for p in self.include) and \
            not any(p.fullmatch(candidate) for p in self.exclude)

    def _patterns(self, patterns: GlobPattern) -> list[re.Pattern[str]]:
        given = [patterns] if isinstance(patterns, str) else list(patterns)
        return [self._compiled(pattern) for pattern in given]

    def _compiled(self, pattern: str) -> re.Pattern[str]:
        between = re.escape(self.separator)

        def segment(text: str) -> str:
            if text == "**":
                return f"({between}[^{self.separator}]+)*"
            if "**" in text:
                raise ValueError("** can only appear as an entire path segment")
            parts = (re.escape(part) for part in text.split("*"))
            return between + f"[^{self.separator}]*".join(parts)
        return re.compile("".join(segment(s) for s in pattern.split(self.separator)))

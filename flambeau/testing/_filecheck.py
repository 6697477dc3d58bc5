"""`FileCheck`: does a text contain given pieces, in order?"""
from __future__ import annotations

from typing import Any

from flambeau._support.c_functions import bound_in_c


@bound_in_c
class FileCheck:
    """Collects what a text must contain; `run(text)` checks it.

    >>> FileCheck().check("one").check_next("two").check_not("four").run("zero one\\ntwo\\nthree")
    """

    def __init__(self) -> None:
        self._steps: list[tuple[str, str, Any]] = []

    def _add(self, kind: str, text: str, extra: Any = None) -> FileCheck:
        self._steps.append((kind, text, extra))
        return self

    def check(self, test_string: str) -> FileCheck:
        """The text contains this, after what was found before."""
        return self._add("check", test_string)

    def check_not(self, test_string: str) -> FileCheck:
        """This does not occur between the pieces around it."""
        return self._add("not", test_string)

    def check_same(self, test_string: str) -> FileCheck:
        """This occurs later on the same line."""
        return self._add("same", test_string)

    def check_next(self, test_string: str) -> FileCheck:
        """This occurs on the next line."""
        return self._add("next", test_string)

    def check_count(self, test_string: str, count: int, exactly: bool = False) -> FileCheck:
        """This occurs `count` times (with `exactly`, and no more often)."""
        return self._add("count", test_string, (count, exactly))

    def check_dag(self, test_string: str) -> FileCheck:
        """This occurs, in whatever order with the `check_dag`s next to it."""
        return self._add("dag", test_string)

    def check_regex(self, test_string: str) -> FileCheck:
        """The regular expression matches, after what was found before."""
        return self._add("regex", test_string)

    def check_source_highlighted(self, test_string: str) -> FileCheck:
        """Raises NotImplementedError: no graph here marks places in its source."""
        raise NotImplementedError("FileCheck.check_source_highlighted")

    def run(self, test_string: str) -> None:
        """Raise RuntimeError if `test_string` is not as described."""
        text, at, group_start, forbidden = str(test_string), 0, 0, []
        previous = None
        for kind, piece, extra in self._steps:
            if kind == "not":
                forbidden.append(piece)
                continue
            if kind != "dag" or previous != "dag":
                group_start = at
            start, end = self._find(kind, piece, extra, text, at, group_start)
            self._absent(forbidden, text[at:start])
            forbidden = []
            at = max(at, end)
            previous = kind
        self._absent(forbidden, text[at:])

    @staticmethod
    def _absent(forbidden: list[str], part: str) -> None:
        for piece in forbidden:
            if piece in part:
                raise RuntimeError(f"Expected to not find {piece!r} but found it in:\n{part}")

    @staticmethod
    def _find(kind: str, piece: str, extra: Any, text: str, at: int,
              group_start: int) -> tuple[int, int]:
        if kind == "regex":
            import re
            match = re.compile(piece).search(text, at)
            if match is None:
                raise RuntimeError(f"Expected to find regex {piece!r} but did not find it in:\n"
                                   f"{text[at:]}")
            return match.span()
        start = text.find(piece, group_start if kind == "dag" else at)
        wanted = 1
        if kind == "count":
            wanted, exactly = extra
            if text.count(piece, at) < wanted or (exactly and text.count(piece, at) != wanted):
                raise RuntimeError(f"Expected to find {piece!r} {wanted} times but found "
                                   f"{text.count(piece, at)} in:\n{text[at:]}")
        if start < 0 and wanted:
            raise RuntimeError(f"Expected to find {piece!r} but did not find it\nSearched string:\n"
                               f"{text[at:]}")
        lines = text.count("\n", at, start)
        if (kind == "same" and lines) or (kind == "next" and lines != 1):
            where = "the same line" if kind == "same" else "the next line"
            raise RuntimeError(f"Expected to find {piece!r} on {where} but it is {lines} lines "
                               f"further in:\n{text[at:]}")
        end = start
        for _ in range(wanted):
            end = text.find(piece, end) + len(piece)
        return start, end

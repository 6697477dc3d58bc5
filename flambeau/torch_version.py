"""`TorchVersion`: a version as a string that compares like a version."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_PATTERN = (r"v?(?P<release>\d+(?:\.\d+)*)(?:[-_.]?(?P<pre>a|b|rc)(?P<pre_number>\d*))?"
            r"(?:\.post(?P<post>\d+))?(?:\.?dev(?P<dev>\d*))?(?:\+(?P<local>[a-z0-9.]+))?")


def _key(version: Any) -> tuple[Any, ...]:
    """What orders versions: release, then dev < a < b < rc < final < post, then the local part."""
    if isinstance(version, Iterable) and not isinstance(version, str):
        version = ".".join(map(str, version))
    match = re.fullmatch(_PATTERN, str(version).strip(), re.IGNORECASE)
    if match is None:
        raise ValueError(f"Invalid version: {version!r}")
    release = [int(part) for part in match["release"].split(".")]
    while len(release) > 1 and release[-1] == 0:
        release.pop()
    if match["pre"]:
        stage = (match["pre"].lower(), int(match["pre_number"] or 0))
    else:
        development = match["dev"] is not None and match["post"] is None
        stage = ("", 0) if development else ("z", int(match["post"] or -1))
    dev = float("inf") if match["dev"] is None else int(match["dev"] or 0)
    local = [(part.isdigit(), int(part) if part.isdigit() else 0, part)
             for part in (match["local"] or "").lower().split(".") if part]
    return release, stage, dev, local


class TorchVersion(str):
    """A version that compares with strings, tuples and its like.

    >>> TorchVersion("2.13.0+cpu") > "2.9", TorchVersion("2.13.0") == (2, 13)
    (True, True)
    """

    def _compare(self, other: Any, method: str) -> bool:
        try:
            return getattr(_key(self), method)(_key(other))
        except ValueError:
            return getattr(str, method)(self, other)

    def __eq__(self, other: object) -> bool:
        return self._compare(other, "__eq__")

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: Any) -> bool:
        return self._compare(other, "__lt__")

    def __le__(self, other: Any) -> bool:
        return self._compare(other, "__le__")

    def __gt__(self, other: Any) -> bool:
        return self._compare(other, "__gt__")

    def __ge__(self, other: Any) -> bool:
        return self._compare(other, "__ge__")

    __hash__ = str.__hash__


__version__ = TorchVersion("2.13.0+flambeau")

__all__ = ["TorchVersion"]

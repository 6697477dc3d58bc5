"""Files for pipes: which paths, and streams that close when nobody reads them any more."""
from __future__ import annotations

import fnmatch
import inspect
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from io import IOBase
from typing import Any

from flambeau.utils._import_utils import dill_available

DILL_AVAILABLE = dill_available()


class StreamWrapper:
    """A stream that is closed when nobody refers to it any more.

    >>> import io
    >>> list(StreamWrapper(io.BytesIO(b"a"), name="letters"))
    [b'a']
    """

    session_streams: dict[Any, int] = {}    # what is open, where `debug_...` says so
    debug_unclosed_streams = False

    def __init__(self, file_obj: Any, parent_stream: Any = None, name: str | None = None):
        self.file_obj, self.name = file_obj, name
        self.closed, self.child_counter = False, 0
        self.parent_stream, self.close_on_last_child = parent_stream, False
        if parent_stream is not None:
            if not isinstance(parent_stream, StreamWrapper):
                raise RuntimeError("Parent stream should be StreamWrapper, "
                                   f"{type(parent_stream)} was given")
            parent_stream.child_counter += 1
        if StreamWrapper.debug_unclosed_streams:
            StreamWrapper.session_streams[self] = 1

    @classmethod
    def close_streams(cls, v: Any, depth: int = 0) -> None:
        """Close the streams in nested lists, tuples and dicts, as soon as nobody needs them."""
        if depth > 10:
            return
        if isinstance(v, StreamWrapper):
            v.close()
        elif isinstance(v, dict):
            for value in v.values():
                cls.close_streams(value, depth + 1)
        elif isinstance(v, (list, tuple)):
            for value in v:
                cls.close_streams(value, depth + 1)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["file_obj"], name)

    def close(self, *args: Any, **kwargs: Any) -> None:
        """Close the stream, and that from which it was opened if this was its last."""
        if self.closed:
            return
        StreamWrapper.session_streams.pop(self, None)
        parent = self.parent_stream
        if parent is not None:
            parent.child_counter -= 1
            if not parent.child_counter and parent.close_on_last_child:
                parent.close()
        try:
            self.file_obj.close(*args, **kwargs)
        except AttributeError:
            pass
        self.closed = True

    def autoclose(self) -> None:
        """Close the stream when no other that was opened from it is open."""
        self.close_on_last_child = True
        if self.child_counter == 0:
            self.close()

    def __del__(self) -> None:
        if not self.__dict__.get("closed", True):
            self.close()

    def __iter__(self) -> Iterator[Any]:
        yield from self.file_obj

    def __next__(self) -> Any:
        return next(self.file_obj)

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *dir(self.file_obj), *dir(type(self))})

    def __repr__(self) -> str:
        name = "" if self.name is None else f"{self.name},"
        return f"StreamWrapper<{name}{self.file_obj!r}>"

    def __getstate__(self) -> Any:
        return self.file_obj

    def __setstate__(self, obj: Any) -> None:
        self.__init__(obj)                                              # type: ignore[misc]


def match_masks(name: str, masks: str | list[str]) -> bool:
    """Does a name match a pattern, or one of several? No pattern matches all names.

    >>> match_masks("a/b.txt", "*.txt")
    True
    """
    if not masks:
        return True
    return any(fnmatch.fnmatch(name, mask) for mask in (
        [masks] if isinstance(masks, str) else masks))


def get_file_pathnames_from_root(root: str, masks: str | list[str], recursive: bool = False,
                                 abspath: bool = False, non_deterministic: bool = False
                                 ) -> Iterator[str]:
    """The paths of the files in a folder, or a file itself, whose names match."""
    def fail(error: OSError) -> None:
        warnings.warn(f"{error.filename} : {error.strerror}", stacklevel=2)
        raise error
    if os.path.isfile(root):
        path = os.path.abspath(root) if abspath else root
        if match_masks(os.path.basename(path), masks):
            yield path
        return
    for path, folders, files in os.walk(root, onerror=fail):
        if abspath:
            path = os.path.abspath(path)
        if not non_deterministic:
            files.sort()
            folders.sort()
        for name in files:
            if match_masks(name, masks):
                yield os.path.join(path, name)
        if not recursive:
            break


def get_file_binaries_from_pathnames(pathnames: Iterable[str], mode: str,
                                     encoding: str | None = None) -> Iterator[tuple[str, Any]]:
    """Paths and the streams of their files."""
    if not isinstance(pathnames, Iterable):
        pathnames = [pathnames]
    if mode in ("b", "t"):
        mode = "r" + mode
    for path in pathnames:
        if not isinstance(path, str):
            raise TypeError(f"Expected string type for pathname, but got {type(path)}")
        stream = open(path, mode, encoding=encoding)  # noqa: SIM115
        yield path, StreamWrapper(stream)


def validate_pathname_binary_tuple(data: Any) -> None:
    """TypeError unless this is a path and a stream."""
    if not isinstance(data, tuple):
        raise TypeError(f"pathname binary data should be tuple type, but it is type {type(data)}")
    if len(data) != 2:
        raise TypeError(f"pathname binary stream tuple length should be 2, but got {len(data)}")
    if not isinstance(data[0], str):
        raise TypeError("pathname within the tuple should have string type pathname, but it is "
                        f"type {type(data[0])}")
    if not isinstance(data[1], (IOBase, StreamWrapper)):
        raise TypeError("binary stream within the tuple should have IOBase or its subclasses as "
                        f"type, but it is type {type(data[1])}")


def validate_input_col(fn: Callable[..., Any], input_col: Any) -> None:
    """ValueError unless a function takes as many arguments as columns are named."""
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return
    columns = len(input_col) if isinstance(input_col, (list, tuple)) else 1
    by_place = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    many = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    least = sum(p.default is p.empty for p in by_place)
    name = getattr(fn, "__name__", repr(fn))
    if any(p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in parameters):
        raise ValueError(f"The function {name} takes keyword-only parameters, which is not "
                         "allowed.")
    if len(by_place) < columns and not many:
        raise ValueError(f"The function {name} takes {len(by_place)} parameters, but {columns} are "
                         "required.")
    if least > columns:
        raise ValueError(f"The function {name} takes {least} non-default parameters, but {columns} "
                         "are required.")


def _is_local_fn(fn: Any) -> bool:
    """Is a function made inside another?"""
    return "<locals>" in getattr(fn, "__qualname__", "")


def _check_unpickable_fn(fn: Any) -> None:
    """TypeError for what is no function; a warning for one that cannot be pickled."""
    if not callable(fn):
        raise TypeError(f"A callable function is expected, but {type(fn)} is provided.")
    if not DILL_AVAILABLE and (_is_local_fn(fn) or getattr(fn, "__name__", "") == "<lambda>"):
        warnings.warn("Lambda and local functions are not supported by pickle, please use regular "
                      "python function or functools.partial instead.", stacklevel=2)


__all__ = ["StreamWrapper", "get_file_binaries_from_pathnames", "get_file_pathnames_from_root",
           "match_masks", "validate_input_col", "validate_pathname_binary_tuple"]

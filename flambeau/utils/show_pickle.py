"""What a pickle says, without running any of it: `python -m torch.utils.show_pickle FILE`.

Classes and functions that the file names are shown, not imported. FILE may be a member of an
archive, as `model.pt@*/data.pkl`.

>>> import collections, io, pickle
>>> data = pickle.dumps({"loss": 0.5, "kind": collections.Counter})
>>> DumpUnpickler(io.BytesIO(data)).load()
{'loss': 0.5, 'kind': collections.Counter}
"""
from __future__ import annotations

import fnmatch
import pickle
import pprint
import struct
import sys
import zipfile
from typing import IO, Any

__all__ = ["DumpUnpickler", "FakeClass", "FakeObject", "main"]


class FakeObject:
    """What a pickle would make by a call: of what, with which arguments, with which state."""

    def __init__(self, module: str, name: str, args: tuple[Any, ...]):
        self.module, self.name, self.args = module, name, args
        self.state: Any = None

    def __repr__(self) -> str:
        state = "" if self.state is None else f"(state={self.state!r})"
        return f"{self.module}.{self.name}{self.args!r}{state}"

    def __setstate__(self, state: Any) -> None:
        self.state = state


class FakeClass:
    """A class or a function that a pickle names; to call it gives a `FakeObject`."""

    def __init__(self, module: str, name: str):
        self.module, self.name = module, name
        vars(self)["__new__"] = self.fake_new

    def __repr__(self) -> str:
        return f"{self.module}.{self.name}"

    def __call__(self, *args: Any) -> FakeObject:
        return FakeObject(self.module, self.name, args)

    def fake_new(self, *args: Any) -> FakeObject:
        """What `cls.__new__(cls, …)` of a pickle gives."""
        return FakeObject(self.module, self.name, args[1:])


_Unpickler: Any = vars(pickle)["_Unpickler"]            # the one in Python, which can be refined


class DumpUnpickler(_Unpickler):
    """Reads a pickle into lists, dicts, numbers, strings and `FakeObject`s.

    Args:
        file: the file, open for bytes.
        catch_invalid_utf8: a string that is no UTF-8 becomes a `FakeObject` that says so.
    """

    def __init__(self, file: IO[bytes], *, catch_invalid_utf8: bool = False, **kwargs: Any):
        super().__init__(file, **kwargs)
        self.catch_invalid_utf8 = catch_invalid_utf8

    def find_class(self, module: str, name: str) -> FakeClass:
        """What stands for a class."""
        return FakeClass(module, name)

    def persistent_load(self, pid: Any) -> FakeObject:
        """What stands for an object that is kept elsewhere, as the storage of a tensor."""
        return FakeObject("pers", "obj", (pid,))

    dispatch = dict(_Unpickler.dispatch)

    def load_binunicode(self) -> None:
        """Read a string."""
        size, = struct.unpack("<I", self.read(4))
        if size > sys.maxsize:
            raise AssertionError("String too long.")
        text = self.read(size)
        try:
            self.append(str(text, "utf-8", "surrogatepass"))
        except UnicodeDecodeError as error:
            if not self.catch_invalid_utf8:
                raise
            self.append(FakeObject("builtin", "UnicodeDecodeError", (str(error),)))

    dispatch[pickle.BINUNICODE[0]] = load_binunicode


def main(argv: list[str], output_stream: Any = None) -> int | None:
    """Show the pickle that `argv[1]` names: a file, or `ARCHIVE@MEMBER`, where the member may be a
    pattern, of which the first match counts. Without a name, or with several, it says how it is
    called, and gives the exit status 2.

    Raises:
        Exception: so it is called with an `output_stream`.
        KeyError: the archive has no such member.
    """
    if len(argv) != 2:
        if output_stream is not None:
            raise Exception("Pass argv of length 2.")
        print(__doc__, file=sys.stderr)
        return 2
    path = argv[1]
    output: Any = sys.stdout if output_stream is None else output_stream
    name, at, member = path.partition("@")
    if at:
        with zipfile.ZipFile(name) as archive:
            if "*" in member:
                member = next((each for each in archive.namelist()
                               if fnmatch.fnmatch(each, member)), member)
            with archive.open(member) as file:
                value = DumpUnpickler(file, catch_invalid_utf8=True).load()
    else:
        with open(path, "rb") as file:
            value = DumpUnpickler(file, catch_invalid_utf8=True).load()
    pprint.pprint(value, stream=output)
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv))

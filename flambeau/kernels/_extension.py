"""The C++ extension, if it was built, for this version, and is wanted."""

import importlib
import os

# What Python expects of the extension: to be raised with each change that one built before could
# not serve. CMakeLists.txt reads it, so that an extension knows for which it was built.
INTERFACE = 5


def _load():
    """Import the extension, unless it was built for another version."""
    found = importlib.import_module("flambeau.kernels._native")
    if getattr(found, "interface", 0) != INTERFACE:
        raise ImportError("the C++ extension was built for another version of flambeau: build it "
                          "again")
    return found


native, why_not = None, None
if os.environ.get("FLAMBEAU_KERNELS") == "reference":
    why_not = "FLAMBEAU_KERNELS=reference"
else:
    try:
        native = _load()
    except ModuleNotFoundError:
        why_not = "the C++ extension was not built when flambeau was installed"
    except ImportError as error:
        why_not = str(error)


class _Misfit(ValueError, IndexError):
    """Arguments that a kernel finds to be wrong: whoever called it says what of them is."""


Misfit = _Misfit if native is None else native.Misfit


def compiled(name):
    """Declare a kernel in NumPy: the compiled one of that name takes its place, and asks it for
    what it has no loops for."""
    def declare(twin):
        return twin if native is None else native.adopt(name, twin)
    return declare

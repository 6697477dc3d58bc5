"""The examples in docstrings, of every module and of every op of the table.

The package is imported as users import it (pytest's own collection of doctests would execute some
modules a second time, under another name).
"""

import contextlib
import doctest
import importlib
import io
import pkgutil

import pytest

import flambeau
from flambeau.core.op import public

# Importing these is an action: the one aliases `torch`, the other is the command.
ACTIONS = {"flambeau.as_torch", "flambeau.__main__"}
NAMES = {
    "flambeau": flambeau,
    "torch": flambeau,
    "nn": flambeau.nn,
    "F": flambeau.nn.functional,
}  # what an example may use without importing it
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def module_names():
    return ["flambeau"] + sorted(
        info.name
        for info in pkgutil.walk_packages(flambeau.__path__, "flambeau.", lambda name: None)
        if info.name not in ACTIONS and not info.name.endswith("._native")
    )


MODULES = module_names()


class Finder(doctest.DocTestFinder):
    """Finds what a module defines itself, but for the ops, which are found by their table."""

    def _from_module(self, module, object):
        if hasattr(object, "op"):
            return False
        try:
            return super()._from_module(module, object)
        except ValueError:  # an instance that says it is a routine, such as a universal function
            return False


def run(test):
    """Run one docstring's examples; report as doctest does."""
    report = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=OPTIONS, verbose=False)
    runner.run(test, out=report.write)
    assert not runner.failures, report.getvalue()


@pytest.fixture(autouse=True)
def as_it_was():
    """Examples may seed the generator or set defaults; no other test shall notice."""
    random, dtype = flambeau.get_rng_state(), flambeau.get_default_dtype()
    yield
    flambeau.set_rng_state(random)
    flambeau.set_default_dtype(dtype)


@pytest.mark.parametrize("name", MODULES)
def test_module(name):
    module = importlib.import_module(name)
    for test in Finder(exclude_empty=True).find(module, name, extraglobs=NAMES):
        if test.examples:
            run(test)


def ops():
    """Every public op once, by the first of its names."""
    importlib.import_module("flambeau.ops").load()
    for name in MODULES:
        if not name.startswith("flambeau.kernels"):
            with contextlib.suppress(Exception):  # `test_module` tells
                importlib.import_module(name)
    seen = set()
    for namespace, functions in sorted(public.items()):
        for name, function in sorted(functions.items()):
            if ">>>" in (function.__doc__ or "") and function.__doc__ not in seen:
                seen.add(function.__doc__)
                yield pytest.param(function, id=f"{namespace}.{name}")


@pytest.mark.parametrize("function", list(ops()))
def test_op(function):
    test = doctest.DocTestParser().get_doctest(
        function.__doc__, dict(NAMES), function.__name__, None, None
    )
    run(test)

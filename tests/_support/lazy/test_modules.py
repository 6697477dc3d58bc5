"""Modules that are imported when they are first asked for, or found under a second name."""

import importlib
import importlib.util
import sys
from types import ModuleType

import pytest

from flambeau._support.lazy import modules


@pytest.fixture
def package(monkeypatch):
    """A package of this library with a module that has a name."""
    outer, inner = ModuleType("flambeau.of_this_test"), ModuleType("flambeau.of_this_test.inner")
    inner.name = outer.inner = inner
    monkeypatch.setitem(sys.modules, "flambeau.of_this_test", outer)
    monkeypatch.setitem(sys.modules, "flambeau.of_this_test.inner", inner)
    before = set(sys.modules)
    yield outer
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_submodules_are_imported_by_name(package):
    get = modules.lazy_modules("flambeau.of_this_test", "inner")
    assert get("inner") is package.inner
    with pytest.raises(AttributeError, match="of_this_test' has no attribute 'x'"):
        get("x")


def test_names_of_other_modules(package):
    get = modules.lazy_names("flambeau.of_this_test", name="flambeau.of_this_test.inner")
    assert get("name") is package.inner.name
    with pytest.raises(AttributeError, match="has no attribute 'inner'"):
        get("inner")


def test_packages_import_any_module_and_names_of_one():
    get = modules.lazy_package("flambeau.nn.utils", clip_grad_norm_="clip_grad")
    from flambeau.nn import utils
    assert get("clip_grad") is utils.clip_grad
    assert get("clip_grad_norm_") is utils.clip_grad_norm_
    for name in ("no_such_module", "__wrapped__"):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'"):
            get(name)


def test_a_module_has_a_second_name(package):
    modules.alias("flambeau.second_of_this_test", "flambeau.of_this_test", ["inner"])
    assert sys.modules["flambeau.second_of_this_test"] is package
    assert sys.modules["flambeau.second_of_this_test.inner"] is package.inner


def test_parts_export_what_is_theirs_and_pickles_find_it_there(package):
    def function():
        return 1
    package.function, package.__all__ = function, ["function", "inner"]
    modules.parts(package.__name__, {"whole": "*", "whole.part": "function"})
    part = importlib.import_module("flambeau.of_this_test.whole.part")
    assert part.__all__ == ["function"] and package.whole.__all__ == package.__all__
    assert package.whole.part is part and part.inner is package.inner       # the rest is seen too
    assert function.__module__ == part.__name__ and part.function is function
    assert importlib.util.find_spec(part.__name__).name == part.__name__


def test_a_part_does_not_hide_a_function_of_its_name(package):
    def function():
        return 1
    package.function = function
    modules.parts(package.__name__, {"function": "function"})
    assert package.function is function
    assert sys.modules["flambeau.of_this_test.function"].function is function

"""Where modules come from."""
import collections

import pytest

from flambeau.package import ObjMismatchError, ObjNotFoundError, OrderedImporter, sys_importer
from flambeau.package.importer import Importer


class Fixed(Importer):
    """An importer of given modules."""

    def __init__(self, **modules):
        self.modules = modules

    def import_module(self, module_name):
        try:
            return self.modules[module_name]
        except KeyError:
            raise ModuleNotFoundError(module_name) from None


def test_names():
    assert sys_importer.get_name(collections.OrderedDict) == ("collections", "OrderedDict")
    assert sys_importer.import_module("collections") is collections


def test_objects_that_are_not_where_they_say():
    class Local:
        pass
    with pytest.raises(ObjNotFoundError):
        sys_importer.get_name(Local)
    other = type("OrderedDict", (), {"__module__": "collections"})
    with pytest.raises(ObjMismatchError):
        sys_importer.get_name(other)


def test_the_first_that_has_a_module_gives_it():
    first, second = Fixed(a=1), Fixed(a=2, b=3)
    both = OrderedImporter(first, second)
    assert both.import_module("a") == 1 and both.import_module("b") == 3
    with pytest.raises(ModuleNotFoundError):
        both.import_module("c")
    with pytest.raises(TypeError, match=r"3 is not a Importer. All importers"):
        OrderedImporter(3).import_module("a")


def test_modules_of_what_has_none():
    import math
    value = object()
    importer = Fixed(holder=type("M", (), {"value": value}), math=math)
    assert importer.whichmodule(value, "value") == "holder"
    assert importer.whichmodule(object(), "value") == "__main__"

"""Which modules can be imported."""
import sys

import pytest

from flambeau.utils import _import_utils


@pytest.mark.parametrize("name, there", [("json", True), ("json.decoder", True),
                                         ("no_such_module", False), ("no_such.module", False)])
def test_modules(name, there):
    assert _import_utils._check_module_exists(name) is there


def test_looking_does_not_import():
    sys.modules.pop("this", None)
    assert _import_utils._check_module_exists("this") and "this" not in sys.modules


def test_dill():
    found = _import_utils.import_dill()
    assert (found is not None) is _import_utils.dill_available()

"""torch._C has the names that the package takes from it."""
import pytest

import flambeau as torch


@pytest.mark.parametrize("name", sorted(torch._C._OF_THE_PACKAGE))
def test_names_of_the_package_are_the_same_there(name):
    assert getattr(torch._C, name) is getattr(torch, name)

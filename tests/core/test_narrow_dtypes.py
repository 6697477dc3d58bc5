"""Types that no array has: they have names and sizes, and say that they hold nothing."""
import pytest

import flambeau
from flambeau.core import narrow_dtypes


@pytest.mark.parametrize("name,size", [("int4", 1), ("uint1", 1), ("bits16", 2), ("quint8", 1),
                                       ("qint32", 4)])
def test_names_and_sizes(name, size):
    assert getattr(flambeau, name).itemsize == size and repr(getattr(flambeau, name)) \
        == f"torch.{name}"


def test_signs():
    assert flambeau.int4.is_signed and not flambeau.uint4.is_signed


def test_no_tensor_has_them():
    with pytest.raises(NotImplementedError, match=r"dtype torch\.int4 are not implemented"):
        flambeau.zeros(2, dtype=flambeau.int4)


def test_names_that_are_none_are_attribute_errors():       # pickle looks through all modules
    with pytest.raises(AttributeError, match="has no attribute '<lambda>'"):
        getattr(narrow_dtypes, "<lambda>")

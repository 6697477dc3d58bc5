"""The names of the package itself."""
import math

import pytest

import flambeau as torch


def test_constants():
    assert (torch.pi, torch.e, torch.inf) == (math.pi, math.e, math.inf)
    assert math.isnan(torch.nan) and torch.newaxis is None


@pytest.mark.parametrize("alias, name", [("float", "float32"), ("double", "float64"),
                                         ("half", "float16"), ("long", "int64"), ("int", "int32"),
                                         ("short", "int16"), ("cfloat", "complex64"),
                                         ("cdouble", "complex128"), ("chalf", "complex32")])
def test_dtypes_have_two_names(alias, name):
    assert getattr(torch, alias) is getattr(torch, name)
    assert repr(getattr(torch, alias)) == f"torch.{name}"


def test_subpackages_and_private_ops_come_when_first_used():
    assert torch.linalg.__name__.endswith(".linalg")
    assert torch._stack([torch.ones(1), torch.zeros(1)]).tolist() == [[1.0], [0.0]]


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match=r"^module '\w+' has no attribute 'no_such_name'$"):
        torch.no_such_name
    assert not hasattr(torch, "__no_such_name__") and not hasattr(torch, "_no_such_name")


def test_dir_lists_what_has_not_been_used_yet():
    assert {"Tensor", "matmul", "nn", "float32", "distributions", "no_grad"} <= set(dir(torch))


def test_everything_public_is_exported_also_what_comes_when_first_used():
    exported = torch.__all__
    assert {"Tensor", "matmul", "randn", "save", "float32", "inf", "vmap"} <= set(exported)
    assert not {"nn", "annotations", "Any"} & set(exported)

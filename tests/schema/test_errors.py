"""The words for calls that fit nothing; whole calls are in test_signature.py."""
import numpy as np
import pytest

import flambeau as torch
from flambeau.schema import errors
from flambeau.schema.parser import parse
from flambeau.schema.signature import function_signature


@pytest.mark.parametrize("value,name", [
    (1, "int"), ("a", "str"), (None, "NoneType"), (torch.ones(1), "Tensor"),
    (torch.nn.Parameter(torch.ones(1)), "Parameter"), (torch.float32, "torch.dtype"),
    (torch.Size(), "torch.Size"), (torch.Generator(), "torch._C.Generator"),
    (np.float32(1), "numpy.float32"), (np.ones(1), "numpy.ndarray")])
def test_names_of_types(value, name):
    assert errors.type_name(value) == name


def test_one_argument_is_given_but_many_were():
    none = function_signature(parse("f() -> Tensor"))
    one = function_signature(parse("f(Tensor self) -> Tensor"))
    assert errors.too_many(none, "f", 1) == "f() takes 0 positional arguments but 1 was given"
    assert errors.too_many(one, "f", 2) == "f() takes 1 positional argument but 2 were given"


def test_all_that_is_missing_is_named():
    f = function_signature(parse("f(Tensor self, int a, int b, int c=1) -> Tensor"))
    # PyTorch's singular and plural
    assert errors.missing(f, "f", 1) == 'f() missing 2 required positional argument: "a", "b"'


def test_methods_without_parameters():
    assert errors.takes_nothing("abs", 1, False) == "TensorBase.abs() takes no arguments (1 given)"
    assert errors.takes_nothing("abs", 0, True, "Parameter") == \
        "Parameter.abs() takes no keyword arguments"
    assert "'int' object" in errors.no_instance("abs", (1,))
    assert errors.no_instance("abs", ()) == "unbound method TensorBase.abs() needs an argument"


tensor = torch.ones(2, 3)


@pytest.mark.parametrize("call, said", [
    (lambda: tensor.add_(tensor, -4, tensor),
     "add_() received an invalid combination of arguments - got (Tensor, !int!, !Tensor!), but "
     "expected (Tensor other, *, Number alpha = 1)"),
    (lambda: torch.max(tensor, "a", True),
     "max() received an invalid combination of arguments - got (Tensor, str, bool), but expected "
     "one of:\n * (Tensor input, *, Tensor out = None)\n      didn't match because some of the "
     "arguments have invalid types: (Tensor, !str!, !bool!)\n * (Tensor input, Tensor other, *, "
     "Tensor out = None)\n * (Tensor input, int dim, bool keepdim = False, *, tuple of Tensors out "
     "= None)\n"),
    (lambda: torch.max(tensor, dim="a", keepdim=True),
     "max() received an invalid combination of arguments - got (Tensor, keepdim=bool, dim=str), "
     "but expected one of:\n * (Tensor input, *, Tensor out = None)\n      didn't match because "
     "some of the keywords were incorrect: keepdim, dim\n * (Tensor input, Tensor other, *, "
     "Tensor out = None)\n * (Tensor input, int dim, bool keepdim = False, *, tuple of Tensors "
     "out = None)\n"),
    (lambda: tensor.masked_fill("a", 1),
     "masked_fill() received an invalid combination of arguments - got (str, int), but expected "
     "one of:\n * (Tensor mask, Tensor value)\n      didn't match because some of the arguments "
     "have invalid types: (!str!, !int!)\n * (Tensor mask, Number value)\n      didn't match "
     "because some of the arguments have invalid types: (!str!, !int!)\n"),
])
def test_listings_of_several_signatures(call, said):
    with pytest.raises(TypeError) as error:
        call()
    assert str(error.value) == said

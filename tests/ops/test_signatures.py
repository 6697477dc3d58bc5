"""What calls that fit no signature raise: PyTorch's words, recorded."""
import re

import pytest

import flambeau as torch

x = torch.ones(2, 3)
LISTS = ["sum() received an invalid combination of arguments - got (Tensor, float), but expected "
         "one of:\n * (Tensor input, *, torch.dtype dtype = None)\n * (Tensor input, tuple of ints "
         "dim, bool keepdim = False, *, torch.dtype dtype = None, Tensor out = None)\n",
         "sum() received an invalid combination of arguments - got (dim=str, ), but expected one "
         "of:\n * (*, torch.dtype dtype = None)\n * (tuple of ints dim, bool keepdim = False, *, "
         "torch.dtype dtype = None)\n"]
CALLS = [
    # positions: a method's begin after the tensor
    (lambda: torch.flip(x, "a"), "flip(): argument 'dims' (position 2) must be tuple of ints, "
                                 "not str"),
    (lambda: x.flip("a"), "flip(): argument 'dims' (position 1) must be tuple of ints, not str"),
    (lambda: x.add("a"), "add(): argument 'other' (position 1) must be Tensor, not str"),
    (lambda: x.add_("a"), "add_(): argument 'other' (position 1) must be Tensor, not str"),
    (lambda: x.topk("a"), "topk(): argument 'k' (position 1) must be int, not str"),
    (lambda: torch.cumsum(x, dim=2.0), "cumsum(): argument 'dim' must be int, not float"),
    (lambda: torch.linalg.det(None), "linalg_det(): argument 'A' (position 1) must be Tensor, not "
                                     "NoneType"),
    # how many
    (lambda: x.transpose(0), 'transpose() missing 1 required positional arguments: "dim1"'),
    (lambda: torch.relu(x, x), "relu() takes 1 positional argument but 2 were given"),
    (lambda: torch.mean(x, 0, True, 3), "mean() takes from 2 to 3 positional arguments but 4 were "
                                        "given"),
    (lambda: x.mean(0, True, 3), "mean() takes from 1 to 2 positional arguments but 3 were given"),
    (lambda: x.abs(1), "TensorBase.abs() takes no arguments (1 given)"),
    (lambda: x.abs(out=1), "TensorBase.abs() takes no keyword arguments"),
    (lambda: torch.abs(x, of=1), "abs() got an unexpected keyword argument 'of'"),
    # lists
    (lambda: torch.zeros((2, 1.5)), "zeros(): argument 'size' failed to unpack the object at pos 2 "
                                    'with error "type must be tuple of ints,but got float"'),
    (lambda: torch.zeros((1.5, 2)), "zeros(): argument 'size' (position 1) must be tuple of ints, "
                                    "but found element of type float at pos 0"),
    (lambda: torch.cat([x, 1]), "expected Tensor as element 1 in argument 0, but got int"),
    (lambda: torch.cat(x), "cat(): argument 'tensors' (position 1) must be tuple of Tensors, not "
                           "Tensor"),
    # several signatures
    (lambda: torch.sum(x, 1.5), LISTS[0]),
    (lambda: x.sum(dim="a"), LISTS[1]),
    (lambda: torch.add(x, x, beta=1), "add() got an unexpected keyword argument 'beta'"),
    # operators leave the word to Python
    (lambda: x + "a", "unsupported operand type(s) for +: 'Tensor' and 'str'"),
    (lambda: x < "a", "'<' not supported between instances of 'Tensor' and 'str'"),
]


@pytest.mark.parametrize("call, said", CALLS, ids=lambda each: each if type(each) is str else "")
def test_misfits(call, said):
    with pytest.raises(TypeError, match=f"^{re.escape(said)}$"):
        call()


def test_methods_are_functions_on_the_class():
    assert torch.Tensor.add is torch.add and torch.Tensor.topk is torch.topk
    assert x.add.__func__ is not torch.add

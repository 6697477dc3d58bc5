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
    (lambda: torch.flip(x, (0,), out=x), "flip() got an unexpected keyword argument 'out'"),
    # what would pass otherwise
    (lambda: torch.cumsum(x, True), "cumsum(): argument 'dim' (position 2) must be int, not bool"),
    (lambda: x.sum(1, keepdim=1), "sum(): argument 'keepdim' must be bool, not int"),
    (lambda: torch.hstack(x), "hstack(): argument 'tensors' (position 1) must be tuple of Tensors, "
                              "not Tensor"),
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


one, two = torch.tensor(1), torch.tensor(2.0)
ERRORS = [
    (RuntimeError, lambda: torch.addcmul(x, torch.ones(2, 2), x), "The size of tensor a (3) must "
     "match the size of tensor b (2) at non-singleton dimension 1"),
    (TypeError, lambda: torch.meshgrid(x[0], [1]), "expected Tensor as element 1 in argument 0, "
                                                   "but got list"),
    (RuntimeError, lambda: torch.addmm(x, torch.ones(2), x.double()),
     "self and mat2 must have the same dtype, but got Float and Double"),
    (IndexError, lambda: torch.addbmm(x, one, one), "Dimension specified as 1 but tensor has no "
                                                    "dimensions"),
    (RuntimeError, lambda: torch.addmm(x, x, torch.eye(3), alpha=2j),
     "value cannot be converted to type float without overflow"),
    (RuntimeError, lambda: x.index_add(0, two, x), "index_add_(): Expected dtype int32/int64 for "
                                                   "index but got: Float"),
    (RuntimeError, lambda: torch.index_reduce(x, 0, one, x, "amax"), "index_reduce_(): Number of "
     "indices (1) should be equal to source.size(dim): (2), for dim: 0"),
    (IndexError, lambda: x.index_copy(0, torch.tensor([0]), x), "index_copy_(): Number of indices "
     "(1) should be equal to source.size(dim) (2)"),
    (RuntimeError, lambda: torch.zeros(2, device=0), "Cannot access accelerator device when none "
                                                     "is available."),
    (RuntimeError, lambda: x.diff(prepend=one), "diff expects prepend or append to be the same "
                                                "dimension as input"),
]


@pytest.mark.parametrize("kind, call, said", ERRORS)
def test_errors_of_calls_that_fit(kind, call, said):
    with pytest.raises(kind, match=f"^{re.escape(said)}"):
        call()


@pytest.mark.parametrize("call, same", [
    (lambda: torch.addcmul(x, x, x, value=two), lambda: torch.addcmul(x, x, x, value=2.0)),
    (lambda: torch.linspace(0, 1, one + 1), lambda: torch.tensor([0.0, 1.0])),
    (lambda: x.diagonal(offset=one), lambda: x.diagonal(offset=1)),
    (lambda: torch.linalg.matrix_power(torch.eye(2), one), lambda: torch.eye(2)),
    (lambda: torch.aminmax(x, dim=one)[0], lambda: torch.ones(2)),
    (lambda: torch.polygamma(one, x), lambda: torch.polygamma(1, x)),
    (lambda: torch.div(7, x + 1, rounding_mode="floor"), lambda: x + 2),
])
def test_tensors_of_one_number_are_numbers(call, same):
    assert torch.equal(call(), same())


def test_methods_are_no_functions_of_the_namespace():
    assert torch.Tensor.matmul.__name__ == torch.matmul.__name__ == "matmul"
    assert torch.Tensor.add is not torch.add


def test_tensors_known_to_stand_for_numbers_are_checked_again_when_they_change():
    y = torch.ones(2)
    for _ in range(3):                      # the third is not looked at any more
        assert torch.add(y, y, alpha=torch.tensor(2.0)).tolist() == [3, 3]
    for wrong in (torch.ones(2), torch.ones((), requires_grad=True)):
        with pytest.raises(TypeError, match="must be Number, not Tensor"):
            torch.add(y, y, alpha=wrong)
    with pytest.raises(RuntimeError, match="argument alpha must not be a complex number"):
        torch.add(y, y, alpha=torch.tensor(1j))
    assert torch.add(y, y, alpha=torch.tensor(2)).tolist() == [3, 3]

"""Members that compute nothing: form in memory, values as Python has them, copies."""
import copy
import pickle

import numpy as np
import pytest

import flambeau as torch


def test_form_in_memory():
    x = torch.arange(24).reshape(2, 3, 4)
    y = x.transpose(0, 2)
    assert y.stride() == (1, 4, 12) and y.stride(-1) == 12 and y.storage_offset() == 0
    assert x[1].storage_offset() == 12 and not y.is_contiguous() and y.contiguous().is_contiguous()
    assert x.element_size() * x.nelement() == x.nbytes == x.untyped_storage().nbytes()
    assert x[1].data_ptr() - x.data_ptr() == 12 * 8 and len(x) == 2 and x.dim() == x.ndimension()


def test_values_as_python_has_them():
    assert torch.tensor(3).item() == 3 and type(torch.tensor(3.0).item()) is float
    assert int(torch.tensor(3.7)) == 3 and complex(torch.tensor(1j)) == 1j
    assert bool(torch.tensor([1])) and torch.tensor([[1, 2]]).tolist() == [[1, 2]]
    assert [10, 20, 30][torch.tensor(1)] == 20 and f"{torch.tensor(1.5):.2f}" == "1.50"
    with pytest.raises(RuntimeError, match="a Tensor with 2 elements cannot be converted"):
        torch.ones(2).item()
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with more than one value"):
        bool(torch.ones(2))
    with pytest.raises(TypeError, match="only integer tensors of a single element"):
        [1][torch.tensor(0.5)]


def test_arrays_share_memory():
    x = torch.zeros(2)
    x.numpy()[0] = 5
    assert x[0] == 5 and np.asarray(x).dtype == np.float32
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        torch.ones(1, requires_grad=True).numpy()


def test_copies():
    x = torch.ones(2, requires_grad=True)
    x.grad = torch.full((2,), 3.0)
    for made in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert torch.equal(made, x) and made.requires_grad and made.data_ptr() != x.data_ptr()
    assert copy.deepcopy(x).grad.tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(x * 2)


def test_a_tensor_without_dimensions_is_no_sequence():
    with pytest.raises(TypeError, match=r"len\(\) of a 0-d tensor"):
        len(torch.tensor(1))
    with pytest.raises(TypeError, match="iteration over a 0-d tensor"):
        iter(torch.tensor(1))


def test_pickles_and_shallow_copies_of_results_are_leaves():
    x = torch.ones(2, requires_grad=True) * 2
    for found in (copy.copy(x), pickle.loads(pickle.dumps(x))):
        assert found.equal(x) and found.is_leaf and found.requires_grad
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(x)


def test_copies_of_views_without_elements():
    x = torch.ones(3, 3)[3:1:2, None, -1]
    assert copy.deepcopy(x).stride() == x.stride() and copy.deepcopy(x).shape == (0, 1)


def test_only_plain_tensors_are_formatted_as_numbers():
    assert format(torch.tensor(1.5), ".2f") == "1.50"
    parameter = torch.nn.Parameter(torch.tensor(1.5))
    assert format(parameter, "") == repr(parameter)
    with pytest.raises(TypeError, match="unsupported format string"):
        format(parameter, ".2f")


KINDS = ("is_cpu is_cuda is_ipu is_maia is_meta is_mkldnn is_mps is_mtia is_nested is_quantized "
         "is_sparse is_sparse_csr is_vulkan is_xla is_xpu").split()


@pytest.mark.parametrize("name", KINDS)
def test_kinds_of_tensors_are_properties(name):
    x, seen = torch.ones(2), []

    class Seen(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    assert getattr(x, name) is (name == "is_cpu") is getattr(x.as_subclass(Seen), name)
    assert seen == [getattr(torch.Tensor, name).__get__]
    with pytest.raises(AttributeError, match=f"attribute '{name}' of .* is not writable"):
        setattr(x, name, True)

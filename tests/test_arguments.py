"""Wrong arguments are refused where PyTorch 2.13 refuses them."""

from collections import OrderedDict

import numpy as np
import pytest

import flambeau as torch


def parameters(names):
    return [(name, torch.nn.Parameter(torch.ones(1))) for name in names]


def test_parameters_of_plain_dicts_are_sorted():
    kept = torch.nn.ParameterDict
    assert list(kept(dict(parameters("ba")))) == ["a", "b"]
    assert [name for name, _ in kept(dict(parameters("ba"))).named_parameters()] == ["a", "b"]
    assert list(kept(OrderedDict(parameters("ba")))) == list(kept(parameters("ba"))) == ["b", "a"]
    assert list(kept(kept(parameters("za")))) == ["z", "a"]
    assert list(kept(parameters("za")) | dict(parameters("yb"))) == ["z", "a", "b", "y"]


@pytest.mark.parametrize("extents, kind", [
    ([1.5], "float"), (["a"], "str"), ([None], "NoneType"), ([[1]], "list"),
    ([np.float64(2)], "numpy.float64"), ([torch.tensor(2.0)], "Tensor"),
    ([torch.tensor([2, 3])], "Tensor")])
def test_sizes_are_whole_numbers(extents, kind):
    with pytest.raises(TypeError, match=rf"takes an iterable of 'int' \(item 0 is '{kind}'\)"):
        torch.Size(extents)


def test_sizes_of_other_integers():
    made = torch.Size([True, np.int64(2), torch.tensor(3)])
    assert repr(made) == "torch.Size([1, 2, 3])" and all(type(size) is int for size in made)
    assert torch.Size([1, -5]) == (1, -5) and torch.Size() == ()


def test_switches_take_bools():
    for call, message in (
            (lambda: torch.use_deterministic_algorithms("a"), "'mode' .* must be bool, not str"),
            (lambda: torch.use_deterministic_algorithms(1), "'mode' .* must be bool, not int"),
            (lambda: torch.use_deterministic_algorithms(True, warn_only="a"), "'warn_only' must"),
            (lambda: torch.set_autocast_enabled("cpu", "a"), "'enabled' .* must be bool")):
        with pytest.raises(TypeError, match=message):
            call()
    for call, message in ((lambda: torch.set_warn_always(1), "expects a bool, but got int"),
                          (lambda: torch.set_flush_denormal("a"), "expects a bool, but got str"),
                          (lambda: torch.set_float32_matmul_precision(3), "expects a str")):
        with pytest.raises(RuntimeError, match=message):
            call()
    assert not torch.are_deterministic_algorithms_enabled()


@pytest.mark.parametrize("dtype", ["a", 3])
@pytest.mark.filterwarnings("ignore:In CPU autocast")
def test_autocast_takes_a_dtype(dtype):
    with pytest.raises(TypeError, match=r"argument 'dtype' .* must be torch"), \
            torch.autocast("cpu", dtype=dtype):
        pass
    assert torch.get_autocast_dtype("cpu") is torch.bfloat16
    assert not torch.is_autocast_enabled("cpu")


@pytest.mark.parametrize("rows, order", [
    ([[float("nan"), 0.0], [0.0, 1.0]], 1), ([[1.0, 0.0], [0.0, float("nan")]], 2),
    ([[1.0, 2.0], [float("nan"), 1.0]], 2)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
def test_cholesky_of_nan_fails(rows, order, dtype):
    matrix = torch.tensor(rows).to(dtype)
    with pytest.raises(torch.linalg.LinAlgError, match=f"leading minor of order {order} is not"):
        torch.linalg.cholesky(matrix)
    assert torch.linalg.cholesky_ex(matrix).info.item() == order
    with pytest.raises(torch.linalg.LinAlgError, match=r"\(Batch element 1\)"):
        torch.linalg.cholesky(torch.stack([torch.eye(2).to(dtype), matrix]))


def test_nan_in_the_other_half_does_not_matter():
    found = torch.linalg.cholesky(torch.tensor([[1.0, float("nan")], [2.0, 5.0]]))
    assert found.tolist() == [[1.0, 0.0], [2.0, 1.0]]


def test_leaves_that_require_grad_keep_their_memory():
    x = torch.ones(2, requires_grad=True)
    for call in (lambda: x.set_(torch.ones(3)), x.set_,
                 lambda: x.set_(torch.ones(3).untyped_storage())):
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
            call()
    with torch.no_grad():
        x.set_(torch.ones(3))
    assert x.shape == (3,)


@pytest.mark.parametrize("obj, options, error, message", [
    ([1, 2], {}, ValueError, "can't alias arbitrary sequence"),
    (3.0, {}, ValueError, "can't alias arbitrary sequence"),
    (np.ones(2), {"dtype": torch.float32}, ValueError, "dtype 'Double' into dtype 'Float'"),
    (torch.ones(2), {"dtype": torch.float64}, ValueError, "dtype 'Float' into dtype 'Double'"),
    (torch.ones(2), {"device": "meta"}, ValueError, "from device 'cpu' to 'meta'"),
    (np.float32(3), {}, RuntimeError, "can't alias NumPy scalars")])
def test_asarray_without_a_copy(obj, options, error, message):
    with pytest.raises(error, match=message):
        torch.asarray(obj, copy=False, **options)


def test_asarray_shares_memory_where_it_may():
    x, array = torch.ones(2), np.ones(2)
    assert torch.asarray(x, copy=False) is x is torch.asarray(x)
    assert torch.asarray(x, copy=True) is not x
    torch.asarray(array, copy=False)[0] = 5.0
    assert array[0] == 5.0
    assert torch.asarray(x, requires_grad=True, copy=False) is x and x.requires_grad


def test_functions_of_c_count_their_arguments_in_its_words():
    for name in ("is_grad_enabled", "get_default_dtype", "is_anomaly_enabled"):
        with pytest.raises(TypeError, match=rf"^torch.{name}\(\) takes no arguments \(2 given\)"):
            getattr(torch, name)(1, 2)
        with pytest.raises(TypeError, match=rf"^torch.{name}\(\) takes no keyword arguments"):
            getattr(torch, name)(x=1)
    with pytest.raises(TypeError, match=r"takes exactly one argument \(0 given\)"):
        torch.set_autocast_cache_enabled()
    with pytest.raises(TypeError, match=r"^enabled must be a bool \(got int\)"):
        torch.set_autocast_cache_enabled(1)

"""Autocast: regions, switches, Functions that cast for themselves."""
from __future__ import annotations

import threading

import pytest

import flambeau
from flambeau.core import modes


def product():
    return flambeau.mm(flambeau.ones(2, 2), flambeau.ones(2, 2)).dtype


def test_regions_nest_and_leave_nothing_behind():
    before = list(modes.interceptors)
    with flambeau.autocast("cpu"):
        assert product() is flambeau.bfloat16
        with flambeau.autocast("cpu", dtype=flambeau.float16):
            assert product() is flambeau.float16
            with flambeau.autocast("cpu", enabled=False):
                assert product() is flambeau.float32
                assert not flambeau.is_autocast_enabled("cpu")
            assert flambeau.get_autocast_dtype("cpu") is flambeau.float16
        assert product() is flambeau.bfloat16
    assert product() is flambeau.float32
    assert flambeau.get_autocast_dtype("cpu") is flambeau.bfloat16
    assert modes.interceptors == before


def test_a_region_ends_with_an_error():
    before = list(modes.interceptors)
    with pytest.raises(RuntimeError), flambeau.autocast("cpu"):
        flambeau.mm(flambeau.ones(2, 3), flambeau.ones(2, 3))
    assert product() is flambeau.float32 and modes.interceptors == before


def test_other_threads_are_not_cast():
    found = []
    with flambeau.autocast("cpu"):
        thread = threading.Thread(target=lambda: found.append(product()))
        thread.start()
        thread.join()
    assert found == [flambeau.float32]


def test_switches_without_a_region():
    flambeau.set_autocast_enabled("cpu", True)
    try:
        assert product() is flambeau.bfloat16
        flambeau.set_autocast_dtype("cpu", flambeau.float16)
        assert product() is flambeau.float16
    finally:
        flambeau.set_autocast_enabled("cpu", False)
        flambeau.set_autocast_dtype("cpu", flambeau.bfloat16)
    assert product() is flambeau.float32


def test_decorator():
    cast = flambeau.autocast("cpu")(product)
    assert cast() is flambeau.bfloat16 and product() is flambeau.float32


def test_modes_and_subclasses_are_asked_before_the_casts():
    seen = []

    class Mode(flambeau.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append([a._array.dtype.name for a in args])
            return func(*args, **(kwargs or {}))

    class Type(flambeau.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append([a._array.dtype.name for a in args])
            return super().__torch_function__(func, types, args, kwargs or {})

    x = flambeau.eye(2)
    for call in (flambeau.mm, flambeau.matmul, flambeau.nn.functional.linear):
        with flambeau.autocast("cpu"):
            with Mode():
                results = [call(x, x)]
            results.append(call(*[x.as_subclass(Type)] * 2))
        for result in results:
            assert result._array.dtype.name == "bfloat16"
        assert seen == [["float32", "float32"]] * 2
        seen.clear()


def test_vmap_and_forward_mode_see_the_casts():
    x, w = flambeau.ones(5, 2), flambeau.ones(2, 3)
    with flambeau.autocast("cpu"):
        assert flambeau.vmap(lambda row: row @ w)(x).dtype is flambeau.bfloat16
        _, tangent = flambeau.func.jvp(lambda t: t @ w, (x,), (x,))
    assert tangent.dtype is flambeau.bfloat16


def test_functions_that_cast_for_themselves():
    seen = []

    class Cube(flambeau.autograd.Function):
        @staticmethod
        @flambeau.amp.custom_fwd(device_type="cpu")
        def forward(ctx, x):
            ctx.save_for_backward(x)
            seen.append(flambeau.is_autocast_enabled("cpu"))
            return x ** 3

        @staticmethod
        @flambeau.amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            seen.append(flambeau.is_autocast_enabled("cpu"))
            return 3 * grad * ctx.saved_tensors[0] ** 2

    x = flambeau.ones(2, requires_grad=True)
    with flambeau.autocast("cpu"):
        y = Cube.apply(x)
    y.sum().backward()
    assert seen == [True, True] and x.grad.tolist() == [3.0, 3.0]


def test_inputs_are_cast_and_autocast_is_off():
    class Product(flambeau.autograd.Function):
        @staticmethod
        @flambeau.amp.custom_fwd(device_type="cpu", cast_inputs=flambeau.float32)
        def forward(ctx, x):
            assert x.dtype is flambeau.float32
            return x @ x

        @staticmethod
        def backward(ctx, grad):
            return grad

    half = flambeau.ones(2, 2, dtype=flambeau.bfloat16)
    with flambeau.autocast("cpu"):
        assert Product.apply(half).dtype is flambeau.float32


def test_what_is_refused():
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        flambeau.autocast(3)
    with pytest.raises(RuntimeError, match="unsupported scalarType"):
        flambeau.autocast("meta") if not flambeau.amp.is_autocast_available("meta") else None
    with pytest.warns(UserWarning, match="target dtype is not supported"):
        assert not flambeau.autocast("cpu", dtype=flambeau.float32)._enabled
    with pytest.warns(UserWarning, match="CUDA is not available"):
        flambeau.autocast("cuda")
    with flambeau.autocast("cpu"), pytest.raises(RuntimeError, match="prioritize"):
        flambeau.cat([flambeau.ones(2).half(), flambeau.ones(2).bfloat16()])

"""What autocast does to the ops: types as PyTorch gives them, and the cache of casts."""
from __future__ import annotations

import gc
import json
import warnings
import weakref
from pathlib import Path

import pytest
from autocast_cases import result_types

import flambeau

RECORDED = json.loads((Path(__file__).parent.parent / "data" / "autocast.json").read_text())


def test_result_types_are_those_of_pytorch():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = result_types(flambeau)
    wrong = {}
    for call, types in RECORDED.items():
        for ours, theirs in zip(found[call], types):
            if theirs != "error" and ours != theirs:
                wrong[call] = found[call], types
    assert not wrong


def test_a_parameter_is_cast_once_and_gets_its_gradient():
    weight = flambeau.nn.Parameter(flambeau.ones(2, 2))
    x = flambeau.ones(2, 2)
    with flambeau.autocast("cpu"):
        first, second = x @ weight, x @ weight
        casts = [r.grad_fn.next_functions[1][0] for r in (first, second)]
        assert casts[0] is casts[1]
    (first.sum() + second.sum()).backward()
    assert weight.grad.dtype is flambeau.float32
    assert weight.grad.tolist() == [[4.0, 4.0], [4.0, 4.0]]


def test_without_cache():
    weight = flambeau.nn.Parameter(flambeau.ones(2, 2))
    x = flambeau.ones(2, 2)
    with flambeau.autocast("cpu", cache_enabled=False):
        first, second = x @ weight, x @ weight
        assert (first.grad_fn.next_functions[1][0] is not second.grad_fn.next_functions[1][0])


def test_the_cache_is_emptied():
    weight = flambeau.nn.Parameter(flambeau.ones(2, 2))
    with flambeau.autocast("cpu"):
        flambeau.ones(2, 2) @ weight
    reference = weakref.ref(weight)
    del weight
    gc.collect()
    assert reference() is None


def test_values_are_those_of_the_cast_arguments():
    flambeau.manual_seed(0)
    a, b = flambeau.randn(3, 4), flambeau.randn(4, 5)
    with flambeau.autocast("cpu"):
        found = a @ b
    assert flambeau.equal(found, a.bfloat16() @ b.bfloat16())


def test_an_input_is_no_parameter_and_is_not_kept():
    x = flambeau.ones(2, 2)
    with flambeau.autocast("cpu"):
        first, second = (flambeau.ones(2, 2, requires_grad=True) * 1 @ x for _ in range(2))
        assert first.grad_fn.next_functions[0][0] is not second.grad_fn.next_functions[0][0]


def test_what_is_left_alone():
    a = flambeau.ones(2, 2)
    with flambeau.autocast("cpu"):
        assert (a.double() @ a.double()).dtype is flambeau.float64
        assert flambeau.mm(a, a, out=flambeau.empty(2, 2)).dtype is flambeau.float32
        assert (a.int() @ a.int()).dtype is flambeau.int32
        assert (a + a).dtype is flambeau.float32


@pytest.mark.parametrize("types, wanted", [
    (("float32", "bfloat16"), "float32"), (("bfloat16", "bfloat16"), "bfloat16"),
    (("bfloat16", "float32", "bfloat16"), "float32")])
def test_joined_tensors_get_the_widest_type(types, wanted):
    parts = [flambeau.ones(2, dtype=getattr(flambeau, name)) for name in types]
    with flambeau.autocast("cpu"):
        assert flambeau.cat(parts).dtype is getattr(flambeau, wanted)

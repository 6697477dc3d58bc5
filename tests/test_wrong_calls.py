"""Wrong calls of all kinds are refused as PyTorch refuses them: with its types and texts."""
import importlib
import json
import warnings
from pathlib import Path

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flambeau
from flambeau.core.op import table
from flambeau.dispatch.aten.schemas import recorded_overload

DATA = Path(__file__).parent / "data"


def test_wrong_calls_are_refused_in_pytorch_s_words():
    for name in ("export", "masked", "nested", "nn.utils.parametrizations", "nn.utils.parametrize",
                 "nn.utils.prune", "nn.utils.stateless", "overrides", "package", "signal",
                 "utils.benchmark", "utils.checkpoint"):
        importlib.import_module(f"flambeau.{name}")
    calls = (DATA / "wrong_calls.txt").read_text().splitlines()
    answers = json.loads((DATA / "wrong_calls.json").read_text())
    different = []
    for call, expected in zip(calls, answers, strict=True):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                eval(call, {"torch": flambeau, "numpy": numpy})
            found = ["", ""]
        except Exception as error:
            found = [type(error).__name__, str(error).split("\n")[0]]
        if found != expected:
            different.append(f"{call}\n  expected {expected}\n  found    {found}")
    assert not different, "\n".join(different)


BEYOND = st.one_of(st.integers(2 ** 64, 2 ** 90), st.integers(-2 ** 90, -2 ** 63 - 1))
X = flambeau.ones(1, 2, 3, 4)


@given(BEYOND)
@settings(max_examples=15, deadline=None)
def test_an_integer_of_more_than_64_bits_is_refused_by_what_it_was_given_to(n):
    F = flambeau.nn.functional
    for call in (lambda: X.cumsum(n), lambda: X.narrow(0, n, 1), lambda: X.flatten(n),
                 lambda: F.max_pool2d(X, n), lambda: F.adaptive_avg_pool2d(X, n),
                 lambda: F.conv2d(X, X, None, n), lambda: flambeau.trapezoid(X, X, dim=n)):
        with pytest.raises(ValueError, match=r"^Overflow when unpacking long long$"):
            call()
    for name, call in (("max_pool2d", lambda: F.max_pool2d(X, (2, n))),
                       ("adaptive_avg_pool2d", lambda: F.adaptive_avg_pool2d(X, (1, n))),
                       ("pad", lambda: F.pad(X, (1, n)))):
        with pytest.raises(TypeError, match=r"failed to unpack the object at pos 2") as caught:
            call()
        assert name in str(caught.value)
    for call in (lambda: F.leaky_relu(X, n), lambda: flambeau.threshold(X, n, 1),
                 lambda: X + n):
        with pytest.raises(OverflowError):
            call()


# ---- rules that hold for every operation ---------------------------------------------------------

def refusal(call, *args, **kwargs):
    """What a call is refused with; None if it is not."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call(*args, **kwargs)
    except Exception as error:
        return type(error).__name__, str(error).split("\n")[0]
    return None


INPLACE = sorted(name for name in dir(flambeau.Tensor)
                 if name.endswith("_") and not name.startswith("_")
                 and name not in ("requires_grad_", "retain_grad_", "share_memory_"))


@pytest.mark.parametrize("name", INPLACE)
def test_a_tensor_of_inference_mode_is_refused_after_what_the_operation_refuses(name):
    method = getattr(flambeau.Tensor, name)
    for args in ((), (flambeau.ones(7, 5),), (flambeau.ones(7, 5), flambeau.ones(3)), (0, "a")):
        plain = flambeau.ones(2, 3)
        expected = refusal(method, plain, *args)
        with flambeau.inference_mode():
            tensor = flambeau.ones(2, 3)
        found = refusal(method, tensor, *args)
        if expected is not None:
            assert found == expected
        elif found is not None:
            assert found[1].startswith("Inplace update to inference tensor")
            assert tensor.shape == plain.shape


def test_what_is_written_to_a_tensor_of_inference_mode_is_there_when_it_is_refused():
    with flambeau.inference_mode():
        tensor = flambeau.ones(2)
    for write in (lambda: tensor.add_(1), lambda: tensor.__setitem__(0, 2.),
                  lambda: flambeau.add(tensor, 0, out=tensor), lambda: tensor.copy_(tensor)):
        assert refusal(write)[1].startswith("Inplace update to inference tensor")
        assert tensor.tolist() == [2, 2]


@pytest.mark.parametrize("name", INPLACE)
def test_views_that_conjugate_are_refused_wrong_arguments_as_others(name):
    method = getattr(flambeau.Tensor, name)
    for args, kwargs in (((), {"wrong": 1}), (("a",), {}), (tuple("abcdefg"), {})):
        plain = flambeau.ones(2, dtype=flambeau.complex64)
        assert refusal(method, plain.conj(), *args, **kwargs) == \
            refusal(method, plain, *args, **kwargs)


def test_sizes_that_do_not_broadcast_are_refused_before_types_that_do_not_promote():
    wide = flambeau.ones(2, 3)
    narrow, unsigned = (flambeau.ones(2, 4).to(dtype) for dtype in
                        (flambeau.float8_e4m3fn, flambeau.uint16))
    for name, op in table.items():
        function = getattr(flambeau, name.partition(".")[0], None)
        if op.kind != "pointwise" or op.inplace or len(op.tensors) != 2 or op.conditions \
                or function is None or not all(p.kind == "Tensor"
                                               for p in op.schema.parameters[:2]):
            continue
        same = refusal(function, wide, flambeau.ones(2, 4))
        for other in (narrow, unsigned):
            said = refusal(function, wide, other)
            assert said == same or not said[1].startswith("Promotion for"), (name, said, same)


@pytest.mark.parametrize("name", INPLACE)
def test_what_allocates_its_result_is_refused_in_place_as_it_is_else(name):
    known = recorded_overload(name, "default")
    functional = getattr(flambeau.Tensor, name[:-1], None)
    if known is None or functional is None or "structured" not in known.facts:
        pytest.skip("makes no result that another form writes to")
    for tensor in (flambeau.quantize_per_tensor(flambeau.ones(2, 2), 1., 0, flambeau.quint8),
                   flambeau.eye(2).to_sparse_csr()):
        expected = refusal(functional, tensor.clone())
        if expected is not None and ".out'" in expected[1]:
            assert refusal(getattr(flambeau.Tensor, name), tensor) == expected

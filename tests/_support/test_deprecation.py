"""What is deprecated warns of the line that called, each time."""

import warnings

import pytest

import flambeau
from flambeau import nn
from flambeau._support.deprecation import deprecated
from flambeau.ao import quantization
from flambeau.ao.quantization import quantize_fx


@deprecated("gone soon", DeprecationWarning)
def old(a, b=2):
    """What it does."""
    return a + b


def test_the_caller_is_warned():
    with pytest.warns(DeprecationWarning, match="^gone soon$") as found:
        assert old(1, b=3) == old(2) == 4
    assert [w.filename for w in found] == [__file__] * 2
    assert (old.__doc__, old.__name__, old.__deprecated__) == ("What it does.", "old", "gone soon")


def _calls():
    model, example = nn.Sequential(nn.Linear(2, 2)).eval(), (flambeau.ones(1, 2),)
    mapping = quantization.get_default_qconfig_mapping()
    yield quantization.prepare, lambda f: f(model)
    yield quantization.prepare_qat, lambda f: f(nn.Linear(2, 2))
    yield quantization.convert, lambda f: f(model)
    yield quantization.quantize_dynamic, lambda f: f(model)
    yield quantization.quantize, lambda f: f(model, lambda m: None, ())
    yield quantization.quantize_qat, lambda f: f(model, lambda m: None, ())
    yield quantize_fx.prepare_fx, lambda f: f(model, mapping, example)
    yield quantize_fx.convert_fx, lambda f: f(quantize_fx.prepare_fx(model, mapping, example))
    yield quantization.get_default_qconfig_dict, lambda f: f()
    yield flambeau.cuda.memory_cached, lambda f: f()


@pytest.mark.parametrize(("function", "call"), list(_calls()))
def test_public_functions_say_what_they_are_marked_with(function, call):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call(function)
    assert function.__deprecated__ in [str(w.message) for w in found if w.filename == __file__]

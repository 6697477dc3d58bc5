"""Linear layers, bilinear ones, and those that learn their size from their input."""
import pytest
from module_tests import ModuleTests
from nn_cases import Cases, warmed

import flambeau as torch
from flambeau import nn

cases = Cases()
cases("Identity", lambda t: t.nn.Identity(1, a=2), (2, 3))
cases("Linear", lambda t: t.nn.Linear(3, 4), (2, 5, 3))
cases("Linear-no-bias", lambda t: t.nn.Linear(3, 4, bias=False), (3,))
cases("LazyLinear", lambda t: warmed(t, "LazyLinear", (4,), (2, 3)), (2, 3))
cases("Bilinear", lambda t: t.nn.Bilinear(3, 4, 2), (5, 3), (5, 4))


class TestLayers(ModuleTests):
    cases = cases


def test_bilinear_is_a_form_of_each_pair():
    layer = nn.Bilinear(3, 4, 2)
    a, b = torch.rand(5, 3), torch.rand(5, 4)
    wanted = torch.einsum("ni,oij,nj->no", a, layer.weight, b) + layer.bias
    torch.testing.assert_close(layer(a, b), wanted)


@pytest.mark.parametrize("given, error, message", [
    ((torch.tensor(1.0), torch.tensor(1.0), torch.ones(1, 1, 1)), IndexError,
     "Dimension specified as -1 but tensor has no dimensions"),
    ((torch.ones(2, 3), torch.ones(2, 3), torch.ones(1, 1)), RuntimeError,
     "input1 size does not match weight size: got 3 but expected 1")])
def test_bilinear_forms_that_do_not_fit(given, error, message):
    with pytest.raises(error, match=message):
        nn.functional.bilinear(*given)


def test_first_values_are_as_large_as_the_inputs_are_many():
    torch.manual_seed(0)
    layer = nn.Linear(400, 50)
    bound = 1 / 400**0.5
    assert 0.99 * bound < layer.weight.abs().max() <= bound
    assert layer.bias.abs().max() <= bound


def test_a_lazy_layer_becomes_an_ordinary_one():
    layer = nn.LazyLinear(3)
    assert repr(layer) == "LazyLinear(in_features=0, out_features=3, bias=True)"
    assert layer.has_uninitialized_params()
    layer(torch.ones(2, 5))
    assert type(layer) is nn.Linear and layer.in_features == 5 and layer.weight.shape == (3, 5)

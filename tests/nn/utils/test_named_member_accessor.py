import pytest

import flambeau
from flambeau import nn
from flambeau.nn.utils._named_member_accessor import (
    NamedMemberAccessor,
    set_tensor,
    swap_submodule,
    swap_tensor,
)


@pytest.fixture
def layer():
    return nn.Linear(2, 2)


def test_a_tensor_takes_the_place_of_a_parameter(layer):
    before, zeros = layer.bias, flambeau.zeros(2)
    assert swap_tensor(layer, "bias", zeros) is before
    assert layer.bias is zeros and "bias" in layer._parameters
    set_tensor(layer, "bias", before)
    assert layer.bias is before


def test_what_is_no_tensor_is_refused(layer):
    zeros = flambeau.zeros(2)
    for call, error, message in [
            (lambda: swap_tensor(layer, "no", zeros), AttributeError, "Linear has no attribute"),
            (lambda: swap_tensor(layer, "a.b", zeros), KeyError, "tensor name can"),
            (lambda: swap_tensor(layer, "", zeros), KeyError, "be empty string"),
            (lambda: swap_tensor(3, "w", zeros), TypeError, "not an instance of torch.nn.Module"),
            (lambda: swap_tensor(layer, "bias", 3), TypeError, "not an instance of torch.Tensor"),
            (lambda: swap_tensor(layer, "in_features", zeros), TypeError, "`in_features`: 2"),
            (lambda: swap_submodule(nn.Sequential(), "x", layer), KeyError, "does not exist")]:
        with pytest.raises(error, match=message):
            call()


def test_names_with_dots():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    accessor, zeros = NamedMemberAccessor(model), flambeau.zeros(2)
    assert accessor.get_submodule("0") is model[0]
    assert accessor.check_keys(["0.weight", "z"])[1] == ["z"]
    bias = model[0].bias
    before, missing = accessor.swap_tensors_dict({"0.bias": zeros})
    assert before["0.bias"] is bias and not missing and model[0].bias is zeros
    with pytest.raises(RuntimeError, match=r"Missing key\(s\): '0.zz'"):
        accessor.swap_tensors_dict({"0.bias": bias, "0.zz": zeros})
    assert model[0].bias is zeros
    accessor.del_tensor("0.bias")
    assert not hasattr(model[0], "bias")
    with pytest.raises(AssertionError, match="got 1 names and 2 values"):
        accessor.set_tensors(["0.weight"], [zeros, zeros])
    other = nn.ReLU()
    accessor.swap_submodule("1", other)
    assert model[1] is other

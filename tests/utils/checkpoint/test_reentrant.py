"""The variant that records nothing: one node, which runs the function and a backward pass."""
import pytest

import flambeau
from flambeau.utils import checkpoint as module
from flambeau.utils.checkpoint import checkpoint


def test_one_node_stands_for_the_function():
    x = flambeau.ones(2, requires_grad=True)
    y = checkpoint(lambda x: x.exp().sin(), x, use_reentrant=True)
    assert type(y.grad_fn).__name__ == "CheckpointFunctionBackward"
    y.sum().backward()
    flambeau.testing.assert_close(x.grad, x.detach().exp() * x.detach().exp().cos())


def test_parameters_inside_get_their_gradients():
    layer = flambeau.nn.Linear(2, 1)
    x = flambeau.ones(3, 2, requires_grad=True)
    checkpoint(layer, x, use_reentrant=True).sum().backward()
    assert layer.weight.grad.tolist() == [[3.0, 3.0]]


def test_no_input_that_requires_a_gradient():
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        y = checkpoint(lambda x: x * 2, flambeau.ones(2), use_reentrant=True)
    assert not y.requires_grad


def test_outputs_without_gradient():
    x = flambeau.ones(2, requires_grad=True)
    y = checkpoint(lambda x: x.detach() * 2, x, use_reentrant=True)
    with pytest.raises(RuntimeError, match="none of output has requires_grad=True"):
        y.sum().backward()


def test_inputs_are_taken_out_of_their_graph():
    x = flambeau.ones(2, requires_grad=True)
    a, b, c = module.detach_variable((x * 2, flambeau.ones(1), "text"))
    assert a.requires_grad and a.grad_fn is None and not b.requires_grad and c == "text"
    with pytest.raises(RuntimeError, match=r"Only tuple of tensors is supported. Got Unsupported"):
        module.detach_variable([x])


def test_states_of_devices():
    assert module.get_device_states(flambeau.ones(1)) == ([], [])
    before = module.DefaultDeviceType.get_device_type()
    try:
        module.DefaultDeviceType.set_device_type("meta")
        assert module.DefaultDeviceType.get_device_type() == "meta"
    finally:
        module.DefaultDeviceType.set_device_type(before)


def test_autocast_is_as_it_was():
    seen = []

    def function(x):
        seen.append((flambeau.is_autocast_enabled("cpu"), flambeau.get_autocast_dtype("cpu")))
        return x * 2
    x = flambeau.ones(2, requires_grad=True)
    with flambeau.autocast("cpu", dtype=flambeau.bfloat16):
        y = checkpoint(function, x, use_reentrant=True)
    y.sum().backward()
    assert seen == [(True, flambeau.bfloat16)] * 2 and not flambeau.is_autocast_enabled("cpu")

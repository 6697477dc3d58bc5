"""Handles for hooks, and hooks of modules made of hooks of nodes."""
import pickle
from collections import OrderedDict

import pytest

import flambeau as torch
from flambeau.utils import hooks


def test_a_handle_removes_its_hook():
    registry = OrderedDict()
    handle = hooks.RemovableHandle(registry)
    registry[handle.id] = "hook"
    with handle:
        assert registry
    assert not registry
    handle.remove()


def test_handles_number_themselves():
    registry = OrderedDict()
    a, b = hooks.RemovableHandle(registry), hooks.RemovableHandle(registry)
    assert b.id == a.id + 1


def test_hooks_that_are_not_pickled():
    x = torch.ones(2, requires_grad=True)
    x.register_hook(print)
    with pytest.warns(UserWarning, match="will not be serialized"):
        hooks.warn_if_has_hooks(x)
    y = torch.ones(2, requires_grad=True)
    y.register_hook(hooks.unserializable_hook(lambda g: g))
    pickle.dumps(y)


def test_gradients_of_a_module_are_replaced():
    seen = []

    def after(module, grad_input, grad_output):
        seen.append((grad_input[0].tolist(), grad_output[0].tolist()))
        return (grad_input[0] * 10,)

    def before(module, grad_output):
        return (grad_output[0] * 2,)
    hook = hooks.BackwardHook("module", [after], [before])
    x = torch.ones(2, requires_grad=True)
    inner, = hook.setup_input_hook((x,))
    hook.setup_output_hook(inner * 3).sum().backward()
    assert seen == [([6.0, 6.0], [2.0, 2.0])] and x.grad.tolist() == [60.0, 60.0]


@pytest.mark.parametrize("answer, message", [
    (lambda grads: grads * 2, "Backward hook returned an invalid number of grad_input"),
])
def test_wrong_numbers_of_gradients(answer, message):
    hook = hooks.BackwardHook("module", [lambda m, gi, go: answer(gi)], [])
    x = torch.ones(2, requires_grad=True)
    inner, = hook.setup_input_hook((x,))
    with pytest.raises(RuntimeError, match=message):
        hook.setup_output_hook(inner * 3).sum().backward()


def test_arguments_that_are_no_tensors_pass():
    hook = hooks.BackwardHook(None, [], [])
    x = torch.ones(2, requires_grad=True)
    found = hook.setup_input_hook(("text", x, None))
    assert found[0] == "text" and found[2] is None and found[1].equal(x)
    with torch.no_grad():
        assert hook.setup_input_hook((x,))[0] is x


def test_inputs_without_outputs_have_no_hooks():
    """There is no grad_output to show where the gradient did not come through the outputs."""
    hook = hooks.BackwardHook("module", [lambda *given: pytest.fail("called")], [])
    x = torch.ones(2, requires_grad=True)
    hook.setup_input_hook((x,))[0].sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


# what full backward hooks give in place of the gradients that they see
WRONG = [
    (lambda n: 3, TypeError, r"object of type 'int' has no len\(\)"),
    (lambda n: torch.ones(5), RuntimeError, "invalid number of {}, got 5, but expected 1"),
    (lambda n: (), RuntimeError, "invalid number of {}, got 0, but expected 1"),
    (lambda n: [3], TypeError, "expected Variable, but hook returned 'int'"),
    (lambda n: [torch.ones(7)], RuntimeError, "hook 'hook' has changed the size of value"),
]


@pytest.mark.parametrize(("register", "seen"), [("register_full_backward_hook", "grad_input"),
                                                ("register_full_backward_pre_hook", "grad_output")])
@pytest.mark.parametrize(("answer", "error", "text"), WRONG)
def test_wrong_answers_of_hooks(register, seen, answer, error, text):
    layer = torch.nn.Linear(3, 2)
    getattr(layer, register)(lambda *given: answer(layer))
    with pytest.raises(error, match=text.format(seen)):
        layer(torch.ones(1, 3, requires_grad=True)).sum().backward()


@pytest.mark.parametrize("kind", [tuple, list])
def test_answers_may_be_any_sequence(kind):
    layer = torch.nn.Linear(3, 2)
    layer.register_full_backward_hook(lambda module, given, out: kind([given[0] * 2]))
    x = torch.ones(1, 3, requires_grad=True)
    layer(x).sum().backward()
    assert torch.equal(x.grad, 2 * layer.weight.detach().sum(0, keepdim=True))

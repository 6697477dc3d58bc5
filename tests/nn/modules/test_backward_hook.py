"""What full backward hooks of modules may give in place of the gradients that they see."""
import pytest

import flambeau
from flambeau import nn

WRONG = [
    (lambda n: 3, TypeError, r"object of type 'int' has no len\(\)"),
    (lambda n: flambeau.ones(5), RuntimeError, "invalid number of {}, got 5, but expected 1"),
    (lambda n: (), RuntimeError, "invalid number of {}, got 0, but expected 1"),
    (lambda n: [3], TypeError, "expected Variable, but hook returned 'int'"),
    (lambda n: [flambeau.ones(7)], RuntimeError, "hook 'hook' has changed the size of value"),
]


@pytest.mark.parametrize(("register", "seen"), [("register_full_backward_hook", "grad_input"),
                                                ("register_full_backward_pre_hook", "grad_output")])
@pytest.mark.parametrize(("answer", "error", "text"), WRONG)
def test_wrong_answers_of_hooks(register, seen, answer, error, text):
    layer = nn.Linear(3, 2)
    getattr(layer, register)(lambda *given: answer(layer))
    with pytest.raises(error, match=text.format(seen)):
        layer(flambeau.ones(1, 3, requires_grad=True)).sum().backward()


@pytest.mark.parametrize("kind", [tuple, list])
def test_answers_may_be_any_sequence(kind):
    layer = nn.Linear(3, 2)
    layer.register_full_backward_hook(lambda module, given, out: kind([given[0] * 2]))
    x = flambeau.ones(1, 3, requires_grad=True)
    layer(x).sum().backward()
    assert flambeau.equal(x.grad, 2 * layer.weight.detach().sum(0, keepdim=True))

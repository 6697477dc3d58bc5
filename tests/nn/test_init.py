"""Initial values."""
from script_tests import ScriptTests

import flambeau as torch
from flambeau.nn import init


class TestScripts(ScriptTests):
    topics = ("init",)


def test_fills_without_their_checks():
    assert init._no_grad_fill_(torch.empty(2), 3.0).tolist() == [3.0, 3.0]
    assert init._no_grad_zero_(torch.ones(2)).tolist() == [0.0, 0.0]
    weight = torch.nn.Parameter(torch.empty(100))
    for fill in (init._no_grad_uniform_, init._no_grad_normal_):
        assert fill(weight, 0.25, 0.5) is weight
    inside = init._no_grad_trunc_normal_(weight, 0.0, 1.0, -1.0, 1.0)
    assert inside.abs().max().item() <= 1.0

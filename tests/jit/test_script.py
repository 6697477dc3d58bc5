"""Wrappers of scripted functions and modules, which behave as what they wrap."""
from __future__ import annotations

import pytest
from jit_cases import Net

import flambeau
from flambeau import jit, nn

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")


def test_functions():
    @jit.script
    def f(x, y: int = 2):
        return x * y
    assert isinstance(f, jit.ScriptFunction) and f.name == "f"
    assert f(flambeau.ones(1)).item() == 2.0 and f(flambeau.ones(1), y=3).item() == 3.0


def test_modules():
    net = Net()
    scripted = jit.script(net)
    assert isinstance(scripted, jit.ScriptModule) and scripted.original_name == "Net"
    assert scripted.state_dict().keys() == net.state_dict().keys()
    assert scripted.linear is net.linear and scripted.twice(3) == 6
    scripted.eval()
    assert not net.training and not net.drop.training
    x = flambeau.ones(1, 2)
    assert flambeau.equal(scripted(x), net(x))
    assert repr(scripted) == ("RecursiveScriptModule(\n  original_name=Net\n"
                              "  (linear): RecursiveScriptModule(original_name=Linear)\n"
                              "  (drop): RecursiveScriptModule(original_name=Dropout)\n)")
    scripted(x).sum().backward()
    assert net.linear.weight.grad is not None


def test_assertions_fail_as_those_of_scripts():
    class Positive(nn.Module):
        def forward(self, x):
            flambeau._assert(x.sum() > 0, "no positive sum")
            return x
    with pytest.raises(jit.Error, match="no positive sum"):
        jit.script(Positive())(-flambeau.ones(2))


@pytest.mark.parametrize("name", ["requires_grad_", "register_forward_hook", "get_submodule",
                                  "bfloat16", "to_empty", "compile"])
def test_scripted_modules_refuse_what_scripts_cannot_do(name):
    with pytest.raises(RuntimeError, match=f"{name} is not supported on ScriptModules"):
        getattr(jit.script(Net()), name)()
    jit.script(Net()).half().double()

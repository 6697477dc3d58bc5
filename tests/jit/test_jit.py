"""torch.jit: wrappers that behave as what they wrap."""
from __future__ import annotations

import pytest

import flambeau
from flambeau import jit, nn

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.drop = nn.Dropout()

    def forward(self, x):
        return self.drop(self.linear(x))

    @jit.export
    def twice(self, x):
        return 2 * x


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


def test_trace_calls_once_with_the_example():
    seen = []

    def f(x):
        seen.append(jit.is_tracing())
        return x + 1
    traced = jit.trace(f, flambeau.ones(2))
    assert seen == [True] and traced(flambeau.ones(1)).item() == 2.0 and seen == [True, False]
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes"):
        jit.trace(nn.Linear(2, 2), flambeau.ones(1, 3))
    module = jit.trace_module(Net(), {"forward": flambeau.ones(1, 2)})
    assert isinstance(module, jit.ScriptModule)


def test_freeze():
    scripted = jit.script(Net())
    with pytest.raises(RuntimeError, match="only implemented for modules in eval mode"):
        jit.freeze(scripted)
    with pytest.raises(RuntimeError, match="Freezing expects a ScriptModule"):
        jit.freeze(Net())
    assert repr(jit.freeze(scripted.eval())) == "RecursiveScriptModule(original_name=Net)"


def test_what_needs_a_compiler(tmp_path):
    for call in (lambda: jit.save(jit.script(Net()), tmp_path / "f"), lambda: jit.load("f"),
                 lambda: jit.CompilationUnit(""), lambda: jit.script(Net()).save("f")):
        with pytest.raises(NotImplementedError, match=r"TorchScript"):
            call()


def test_small_things():
    assert not jit.is_scripting() and jit.annotate(int, 3) == 3
    assert jit.isinstance([1], list[int]) and not jit.isinstance([1.5], list[int])
    assert jit.isinstance({"a": 1}, dict[str, int]) and jit.isinstance((1, "a"), tuple[int, str])
    assert jit.isinstance(None, int | None) and not jit.isinstance(3, (str, float))
    assert jit.wait(jit.fork(lambda x: x + 1, 1)) == 2
    with pytest.warns(DeprecationWarning, match=r"`torch\.jit\.script` is deprecated"):
        jit.script(lambda x: x)


def test_assertions_fail_as_those_of_scripts():
    class Positive(nn.Module):
        def forward(self, x):
            flambeau._assert(x.sum() > 0, "no positive sum")
            return x
    with pytest.raises(jit.Error, match="no positive sum"):
        jit.script(Positive())(-flambeau.ones(2))

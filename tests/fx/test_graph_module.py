"""Graph modules: their state, copies, and folders of code."""
from __future__ import annotations

import copy
import pickle
import subprocess
import sys

from fx_cases import Net

import flambeau
from flambeau import fx


def test_modules_keep_their_state():
    net = Net()
    module = fx.symbolic_trace(net)
    x = flambeau.randn(3, 2)
    assert flambeau.equal(module(x), net(x))
    assert module.state_dict().keys() == net.state_dict().keys()
    assert [n.op for n in module.graph.nodes] == [
        "placeholder", "get_attr", "call_function", "call_module", "call_module", "get_attr",
        "call_function", "output"]
    module(x).sum().backward()
    assert net.weight.grad is not None         # they share their parameters


def test_copies():
    module = fx.symbolic_trace(Net())
    x = flambeau.randn(3, 2)
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert other.code == module.code and flambeau.equal(other(x), module(x))
        assert other.weight is not module.weight
    other = copy.deepcopy(module)
    other.graph.output_node().args = (next(iter(other.graph.nodes)),)
    other.recompile()
    assert other(x) is x and module(x) is not x


def test_to_folder(tmp_path):
    module = fx.symbolic_trace(Net())
    module.to_folder(tmp_path / "made", "Made")
    program = ("from made import Made; import flambeau; "
               "print(Made()(flambeau.ones(1, 2)).tolist())")
    found = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True,
                           text=True, check=True, env={"PYTHONPATH": ":".join(sys.path)})
    assert found.stdout.strip() == str(module(flambeau.ones(1, 2)).tolist())

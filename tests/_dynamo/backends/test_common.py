"""Backends made of `aot_autograd`."""
import flambeau as torch
from flambeau._dynamo.backends.common import aot_autograd, device_from_inputs, dtype_from_inputs


def test_compilers_get_the_graphs():
    seen = []

    def compiler(gm, inputs):
        seen.append([n.op for n in gm.graph.nodes])
        return gm
    x = torch.tensor([1.0, -2.0])
    module = torch.fx.symbolic_trace(lambda x: (x.relu(),))
    found = aot_autograd(fw_compiler=compiler)(module, [x])(x)
    assert found[0].tolist() == [1, 0] and seen and seen[0][0] == "placeholder"


def test_of_the_first_tensor():
    given = [3, torch.ones(1, dtype=torch.float64), torch.ones(1)]
    assert device_from_inputs(given) == torch.device("cpu")
    assert dtype_from_inputs(given) is torch.float64

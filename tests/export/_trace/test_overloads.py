"""Exported functions: their graphs are PyTorch's, and compute what the functions do."""
import json
from pathlib import Path

import pytest

import flambeau
from flambeau.nn import functional as F
from flambeau.utils import _pytree

RECORDED = json.loads((Path(__file__).parents[2] / "data" / "export.json").read_text())
# where flambeau calls other ops to the same effect
OWN_WAYS = ("2 % x", "special.expit", "swapaxes", "local_response_norm", "x.contiguous()",
            "embedding_bag", "gumbel_softmax", "meshgrid")


class Function(flambeau.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x, image):
        return self.function(x, image)


def graph_of(program):
    lines = [line for line in str(program.graph).split("\n")[1:] if "placeholder" not in line]
    return "\n".join(lines).replace("call_function[target=torch.ops.aten.", "[")


def result_of(function):
    flambeau.manual_seed(3)
    x, image = flambeau.rand(2, 4), flambeau.rand(1, 2, 4, 4)
    flambeau.manual_seed(5)
    return _pytree.tree_leaves(function(x, image))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("source", RECORDED["functions"])
def test_graphs_are_pytorchs_and_compute_the_function(source):
    function = eval(source, {"torch": flambeau, "F": F})
    inputs = flambeau.ones(2, 4), flambeau.ones(1, 2, 4, 4)
    program = flambeau.export.export(Function(function), inputs)
    if not any(way in source for way in OWN_WAYS):
        assert graph_of(program) == RECORDED["functions"][source]
    wanted = result_of(function)
    for made in (program, program.run_decompositions()):
        found = result_of(made.module())
        assert len(found) == len(wanted)
        for a, b in zip(found, wanted):
            if isinstance(b, flambeau.Tensor):
                flambeau.testing.assert_close(a, b, equal_nan=True)
            else:
                assert a == b

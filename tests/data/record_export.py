"""Writes export.json: the graphs that `torch.export` makes of small functions and modules.

Run where PyTorch is installed: `python tests/data/record_export.py`. The functions are the keys of
the file that is there; graphs that hold checks made by PyTorch's tracer only are left out.
"""
import json
import warnings
from pathlib import Path

import torch
from torch import nn
from torch.export import Dim, export
from torch.nn import functional as F

PATH = Path(__file__).with_name("export.json")
ONLY_PYTORCHS = ("_assert_", "sym_size", "broadcast_tensors")


class Function(nn.Module):
    """A function of two tensors as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x, image):
        return self.function(x, image)


def graph_of(source):
    function = eval(source, {"torch": torch, "F": F})
    program = export(Function(function), (torch.ones(2, 4), torch.ones(1, 2, 4, 4)))
    return [line for line in str(program.graph).split("\n")[1:] if "placeholder" not in line]


def main():
    warnings.simplefilter("ignore")
    held = json.loads(PATH.read_text())
    found = {}
    for source in held["functions"]:
        graph = "\n".join(graph_of(source))
        if not any(name in graph for name in ONLY_PYTORCHS):
            found[source] = graph.replace("call_function[target=torch.ops.aten.", "[")
    dims = {}
    for text in ("Dim('x', min=2, max=5)", "2 * Dim('x') + 1", "Dim('y') - 1", "Dim.AUTO"):
        dims[text] = repr(eval(text, {"Dim": Dim}))
    PATH.write_text(json.dumps({"functions": found, "dims": dims}, indent=0) + "\n")


if __name__ == "__main__":
    main()

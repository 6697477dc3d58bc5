"""Modules split into parts."""
from __future__ import annotations

import pytest
from fx_cases import Model

import flambeau as torch
from flambeau import fx, nn
from flambeau.fx.passes.split_module import split_module

X = torch.arange(6.0).view(2, 3)


@pytest.mark.parametrize("original", [False, True])
def test_split_module(original):
    model = Model()
    gm = fx.symbolic_trace(model)
    parts = split_module(gm, model, lambda n: int(n.name not in ("a", "relu")),
                         keep_original_order=original)
    assert [n for n, _ in parts.named_children()] == ["submod_0", "submod_1"]
    for mine, theirs in zip(parts(X), model(X)):
        torch.testing.assert_close(mine, theirs)


def test_split_module_hands_attributes_to_the_parts():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.sub = nn.Module()
            self.sub.w = nn.Parameter(torch.ones(2))
            self.p = nn.Parameter(torch.ones(2))

        def forward(self, x):
            return torch.sin(x * self.sub.w) + self.p
    traced = fx.symbolic_trace(Net())
    parts = split_module(traced, traced, lambda node: int(node.name == "add"))
    assert parts.code.strip() == """def forward(self, x):
    sub_w = self.sub.w
    p = self.p
    submod_0 = self.submod_0(x, sub_w);  x = sub_w = None
    submod_1 = self.submod_1(submod_0, p);  submod_0 = p = None
    return submod_1"""
    assert [name for name, _ in parts.named_parameters()] == ["p", "sub.w"]
    x = torch.ones(2)
    torch.testing.assert_close(parts(x), traced(x))
    unnamed = split_module(traced, traced, lambda node: int(node.name == "add"),
                           keep_original_input_name=False)
    assert "def forward(self, arg_0, arg_1):" in unnamed.submod_1.code


def test_cycles_are_refused_in_either_order():
    gm = fx.symbolic_trace(lambda x: ((x + 1) * 2) - x)
    for keep in (False, True):
        with pytest.raises(RuntimeError, match="cycle exists between partitions"):
            split_module(gm, gm, lambda n: int(n.name == "mul"), keep_original_order=keep)

"""Passes one after another, until nothing changes."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import fx
from flambeau.fx.passes.infra.pass_base import PassBase, PassResult
from flambeau.fx.passes.infra.pass_manager import (
    PassManager,
    pass_result_wrapper,
    this_before_that_pass_constraint,
)

X = torch.arange(6.0).view(2, 3)


def test_manager():
    def swap(old, new):
        def run(gm):
            for node in gm.graph.find_nodes(op="call_function", target=old):
                node.target = new
            gm.recompile()
        return pass_result_wrapper(run)
    first, second = swap(torch.sin, torch.cos), swap(torch.cos, torch.neg)
    manager = PassManager([second, first], [this_before_that_pass_constraint(first, second)])
    found = manager(fx.symbolic_trace(lambda x: torch.sin(x)))
    assert torch.equal(found.graph_module(X), -X)

    class Nothing(PassBase):
        def call(self, gm):
            return PassResult(gm, False)
    assert not PassManager([Nothing()])(fx.symbolic_trace(lambda x: x)).modified
    with pytest.raises(TypeError, match="should only take in one variable"):
        manager.add_checks(lambda a, b: None)
    circular = [this_before_that_pass_constraint(first, second),
                this_before_that_pass_constraint(second, first)]
    with pytest.raises(RuntimeError, match="Circular dependency"):
        PassManager([first, second], circular).solve_constraints()
    with pytest.raises(Exception, match="An error occurred when running"):
        PassManager([lambda gm: None])(fx.symbolic_trace(lambda x: x))

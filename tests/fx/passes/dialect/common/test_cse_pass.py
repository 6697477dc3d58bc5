"""What is computed twice is computed once."""
from __future__ import annotations

import flambeau as torch
from flambeau.fx.experimental.proxy_tensor import make_fx
from flambeau.fx.passes.dialect.common.cse_pass import CSEPass, get_CSE_banned_ops

X = torch.arange(6.0).view(2, 3)


def test_what_is_made_twice_is_made_once_unless_that_is_banned():
    graph = make_fx(lambda x: torch.zeros(3) + torch.zeros(3) * x.sin() * x.sin())(X[0, :3])
    aten = torch.ops.aten
    def counts(banned):
        found = CSEPass(banned_ops=banned)(graph).graph_module.graph
        return [len(found.find_nodes(op="call_function", target=t))
                for t in (aten.zeros.default, aten.sin.default)]
    assert counts(None) == counts(get_CSE_banned_ops()) == [1, 1]
    assert counts({aten.sin}) == [1, 2] and counts({aten.zeros.default}) == [2, 1]
    banned = get_CSE_banned_ops()
    assert {aten.rand, aten.native_dropout, aten.add_, aten.lerp_} <= banned
    assert not {aten.add, aten.sin, aten.view} & banned

"""Graphs in files."""
from __future__ import annotations

import flambeau as torch
from flambeau._subclasses.fake_tensor import FakeTensorMode
from flambeau.fx import _graph_pickler
from flambeau.fx.experimental.proxy_tensor import make_fx

X = torch.arange(6.0).view(2, 3)


def test_pickled_graphs():
    gm = make_fx(lambda x: (x.sin(), [x + torch.tensor([1.0, 2.0, 3.0])]))(X)
    data = _graph_pickler.GraphPickler.dumps(gm)
    again = _graph_pickler.GraphPickler.loads(data, FakeTensorMode())
    assert again.code == gm.code
    torch.testing.assert_close(again(X), gm(X))

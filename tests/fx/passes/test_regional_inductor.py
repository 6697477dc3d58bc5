"""Regions for a compiler that is not there."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.fx.experimental.proxy_tensor import make_fx
from flambeau.fx.passes.regional_inductor import regional_inductor

X = torch.arange(6.0).view(2, 3)


def test_there_is_no_compiler():
    gm = make_fx(lambda x: x.sin())(X)
    assert regional_inductor(gm) is gm
    next(iter(gm.graph.nodes)).meta["custom"] = {"compile_with_inductor": True}
    with pytest.raises(NotImplementedError, match="TorchInductor"):
        regional_inductor(gm)

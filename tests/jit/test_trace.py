"""Traced functions and modules."""
from __future__ import annotations

import pytest
from jit_cases import Net

import flambeau
from flambeau import jit, nn

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")


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

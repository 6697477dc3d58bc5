"""What TorchScript would fuse. Settings are remembered; nothing is fused."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import flambeau

_jit: Any = flambeau._C._jit                # whose settings are made from a table

# by name: fuses the legacy one on the CPU, on the GPU, NNC, oneDNN's?
_FUSERS = {"fuser0": (True, False, False, False), "fuser1": (True, False, True, False),
           "fuser2": (False, False, False, False), "fuser3": (True, False, True, True)}


@contextlib.contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """Inside, the executor optimises or not: remembered only."""
    before = _jit._get_graph_executor_optimize()
    _jit._set_graph_executor_optimize(should_optimize)
    try:
        yield
    finally:
        _jit._set_graph_executor_optimize(before)


@contextlib.contextmanager
def fuser(name: str) -> Iterator[None]:
    """Inside, fuse by `fuser0` to `fuser3`: remembered only."""
    if name not in _FUSERS:
        raise Exception(f"unrecognized fuser option (name: {name})")
    before = (_jit._jit_can_fuse_on_cpu(), _jit._jit_can_fuse_on_gpu(),
              _jit._jit_texpr_fuser_enabled(), _jit._jit_llga_enabled())
    switches = (_jit._jit_override_can_fuse_on_cpu, _jit._jit_override_can_fuse_on_gpu,
                _jit._jit_set_texpr_fuser_enabled, _jit._jit_set_llga_enabled)
    for switch, value in zip(switches, _FUSERS[name]):
        switch(value)
    try:
        yield
    finally:
        for switch, value in zip(switches, before):
            switch(value)


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Remembered; gives what it was before."""
    return _jit._jit_set_fusion_strategy(strategy)


def last_executed_optimized_graph() -> Any:
    """Not offered: nothing is compiled."""
    raise NotImplementedError("torch.jit.last_executed_optimized_graph: flambeau has no "
                              "TorchScript")


__all__ = ["fuser", "last_executed_optimized_graph", "optimized_execution", "set_fusion_strategy"]

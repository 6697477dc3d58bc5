"""Which node a backward pass runs now."""
from __future__ import annotations

import sys
from typing import Any

from flambeau.core.autograd import engine
from flambeau.core.autograd.graph import accumulator_of


def current_autograd_node() -> Any:
    """The node whose derivative is being computed on this thread, if any. The engine keeps no note
    of it: it is found where the engine has it, on the stack."""
    if engine.current_pass.get() is None:
        return None
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_code in _PLACES_OF_NODES:
            return frame.f_locals["node"]
        if frame.f_code is engine.accumulate_into.__code__:
            return accumulator_of(frame.f_locals["leaf"])
        frame = frame.f_back
    return None


_PLACES_OF_NODES = {engine.Pass.propagate.__code__, engine.Pass._run_general.__code__}

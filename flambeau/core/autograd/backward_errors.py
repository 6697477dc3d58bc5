"""Errors of the backward pass that name the lines of the user's code which are at fault."""
from __future__ import annotations

import linecache
import re
from typing import Any

from flambeau._support.source_locations import read_place
from flambeau.core.modes import anomaly
from flambeau.core.promotion import type_label
from flambeau.core.tensor import gradient_edge, tensor_types


def describe_place(place: Any) -> str:
    """A place as tracebacks show it: file, line, function, and the line itself."""
    found = read_place(place)
    if found is None:
        return "\n  (at an unknown line)"
    code, number = found
    source = linecache.getline(code.co_filename, number).strip()
    return (f'\n  File "{code.co_filename}", line {number}, in {code.co_name}'
            + (f"\n    {source}" if source else ""))


def op_name(node: Any) -> str:
    """The name of a node's op, as messages have it: `Mul` for `MulBackward0`."""
    return re.sub(r"Backward\d*$", "", node.name())


def stale_error(node: Any, tensor: Any, found: int, expected: int) -> RuntimeError:
    """A saved tensor cannot be used: it was written to."""
    if tensor._detached:
        return RuntimeError("Trying to use a saved tensor that has been detached in-place, i.e. "
                            "with .detach_().This is not supported, please use out-of-place "
                            "`.detach()` instead")
    edge = gradient_edge(tensor)
    origin = "" if edge is None or type(edge) in tensor_types else \
        f", which is output {edge.index} of {op_name(edge.node)},"
    times = found - expected
    written = "" if times < 1 else " The tensor was written to since, here:" if times == 1 else \
        f" The tensor was written to {times} times since, the last time here:"
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace "
        f"operation: [{type_label(tensor.dtype)} {list(tensor.shape)}]{origin} is at version "
        f"{found}; expected version {expected} instead. Hint: {_hint()}\n{node.name()}, made here, "
        f"saved it for its derivative:{describe_place(node)}\n{written.strip()}"
        f"{describe_place(tensor._counter[1]) if written else ''}\nUse the functional form of the "
        "operation that wrote to it, or clone() the tensor before.")


def _hint() -> str:
    if anomaly.enabled:
        return ("the backtrace further above shows the operation that failed to compute its "
                "gradient. The variable in question was changed in there or anywhere later. Good "
                "luck!")
    return ("enable anomaly detection to find the operation that failed to compute its gradient, "
            "with torch.autograd.set_detect_anomaly(True, check_nan=False).")


def freed_error(node: Any) -> RuntimeError:
    """The saved values of a node are asked for after a pass has freed them."""
    place = getattr(node, "freed_by", None)
    by = "" if place is None else \
        f"\nIts saved values were freed by the backward pass called here:{describe_place(place)}"
    return RuntimeError(
        "Trying to backward through the graph a second time (or directly access saved tensors "
        "after they have already been freed). Saved intermediate values of the graph are freed "
        "when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to "
        "backward through the graph a second time or if you need to access saved tensors after "
        f"calling backward.\nThe node that was freed is {node.name()}, made here:"
        f"{describe_place(node)}{by}")

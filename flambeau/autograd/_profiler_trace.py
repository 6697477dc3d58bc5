"""What the profiler knows beyond times: a trace for viewers, and counts of operations."""
from __future__ import annotations

import gzip
import json
import os
import sys
from math import prod
from pathlib import Path
from typing import Any

from flambeau.core.tensor import Tensor


def write_trace(path: str, events: Any, metadata: dict[str, Any]) -> None:
    """Write events as JSON for Perfetto and `chrome://tracing`; packed if the name ends in .gz."""
    process = os.getpid()
    shown: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": process, "tid": 0, "ts": 0,
         "args": {"name": os.path.basename(sys.executable)}},
        {"ph": "M", "name": "process_labels", "pid": process, "tid": 0, "ts": 0,
         "args": {"labels": "CPU"}}]
    forward: dict[int, Any] = {}
    for number, event in enumerate(events):
        place = {"pid": process, "tid": event.thread}
        args: dict[str, Any] = {"External id": event.id, "Ev Idx": number}
        if event.sequence_nr >= 0:
            args |= {"Sequence number": event.sequence_nr, "Fwd thread id": event.fwd_thread}
        if event.input_shapes:
            args["Input Dims"] = event.input_shapes
        start = event.time_range.start
        shown.append({"ph": "X", "name": event.trace_name, **place, "ts": start,
                      "cat": "user_annotation" if event.is_user_annotation else "cpu_op",
                      "dur": event.cpu_time_total, "args": args})
        flow = {"id": event.sequence_nr, **place, "ts": start, "cat": "fwdbwd", "name": "fwdbwd"}
        if event.sequence_nr >= 0 and not event.fwd_thread:
            forward[event.sequence_nr] = {"ph": "s", **flow}
        elif event.sequence_nr in forward:      # an arrow from the op to its derivative
            shown += [forward.pop(event.sequence_nr), {"ph": "f", **flow, "bp": "e"}]
    trace = {"schemaVersion": 1, "deviceProperties": [], **metadata, "traceEvents": shown,
             "traceName": str(path), "displayTimeUnit": "ms"}
    text = json.dumps(trace).encode()
    Path(path).write_bytes(gzip.compress(text) if str(path).endswith(".gz") else text)


def count_flops(name: str, args: Any, result: Any) -> int:
    """Multiplications and additions of the ops that are counted; 0 for all others."""
    shapes = [tuple(a.shape) if isinstance(a, Tensor) else () for a in args]
    name = name.removeprefix("aten::")
    if name in ("mul", "add"):
        return prod(shapes[0])
    if name in ("mm", "bmm"):
        return 2 * prod(shapes[0]) * shapes[1][-1]
    if name in ("addmm", "baddbmm"):
        return 2 * prod(shapes[1]) * shapes[2][-1]
    if name == "conv2d":
        return 2 * result.numel() * prod(shapes[1][1:])
    return 0

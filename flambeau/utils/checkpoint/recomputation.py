"""What the other variant saves, a holder in place of each tensor, and how it fills them."""
from __future__ import annotations

import uuid
import weakref
from collections import defaultdict
from contextvars import ContextVar
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._C import _current_graph_task_id
from flambeau._support.scopes import restoring
from flambeau.autograd.function import Function
from flambeau.core.autograd.saved_hooks import saved_tensors_hooks
from flambeau.utils._python_dispatch import TorchDispatchMode

_PREFIX = "torch.utils.checkpoint"
_debug: ContextVar[bool | None] = ContextVar("checkpoint_debug", default=None)
_early_stop: ContextVar[bool] = ContextVar("checkpoint_early_stop", default=True)
_group: ContextVar[Any] = ContextVar("checkpoint_group", default=None)


class CheckpointError(RuntimeError):
    """The function did not do the same when it ran again."""


# ---- not reentrant ------------------------------------


class _Holder:
    """Stands in the graph for a saved tensor; by pass, the key of its value."""

    def __init__(self) -> None:
        self.handles: dict[Any, Any] = {}


class _Handle:
    """The key of a value that was computed again: it lives until the value was used."""


class _Stop(Exception):
    """Everything that backward needs has been computed."""


class _Frame:
    """One checkpointed call: its holders, in order, and what running again has found."""

    def __init__(self, early_stop: bool, metadata: Any):
        self.early_stop, self.metadata_of = early_stop, metadata
        self.again: Any = None                      # runs the function, given the saved inputs
        self.inputs: Any = None                     # the node that saved the inputs
        self.holders: list[Any] = []                # weak references
        self.metadata: list[Any] = []
        self.values: Any = defaultdict(weakref.WeakKeyDictionary)
        self.counts: dict[Any, int] = defaultdict(int)
        self.done: set[Any] = set()
        self.forward_done = False
        self.ignore_mismatch = False

    def check(self, task: Any) -> None:
        """Was the same saved as in the forward pass?"""
        if self.ignore_mismatch:
            return
        found, expected = self.counts[task], len(self.holders)
        if found != expected:
            raise CheckpointError(
                f"{_PREFIX}: A different number of tensors was saved during the original forward "
                f"and recomputation.\nNumber of tensors saved during forward: {expected}\n"
                f"Number of tensors saved during recomputation: {found}.{_TIP}")
        lines = []
        for i, reference in enumerate(self.holders):
            holder = reference()
            if holder is None or holder.handles.get(task) is None:
                continue
            value = self.values[task].get(holder.handles[task])
            now = self.metadata_of(value)
            if now != self.metadata[i]:
                lines.append(f"tensor at position {i}:\nsaved metadata: {self.metadata[i]}\n"
                             f"recomputed metadata: {now}\n")
        if lines:
            raise CheckpointError(f"{_PREFIX}: Recomputed values for the following tensors have "
                                  "different metadata than during the forward pass.\n"
                                  f"{''.join(lines)}.{_TIP}")


_TIP = """

Tip: `checkpoint(..., debug=True)`, or `with set_checkpoint_debug_enabled(True):`, shows the ops of
both runs.
"""


class _SaveInputs(Function):
    """Saves the inputs of a checkpoint, through whatever hooks are active: an outer checkpoint may
    compute them again too."""

    @staticmethod
    def forward(ctx: Any, dummy: Tensor, *tensors: Tensor) -> Tensor:
        ctx.save_for_backward(*tensors)
        return flambeau.empty(0)

    @staticmethod
    def backward(ctx: Any, *args: Any) -> Any:
        raise AssertionError("Did not expect to backward on this graph")


def _hooks_of_forward(frame: _Frame, report: Any) -> saved_tensors_hooks:
    def pack(tensor: Tensor) -> _Holder:
        holder = _Holder()
        frame.holders.append(weakref.ref(holder))
        if frame.metadata_of is not None:
            with flambeau.no_grad():
                frame.metadata.append(frame.metadata_of(tensor))
        return holder

    def unpack(holder: _Holder) -> Tensor:
        task = _group.get() or _current_graph_task_id()
        if task == -1:
            task = uuid.uuid4()                     # outside of backward: compute for this once
        try:
            if task not in frame.done:
                _run_again(frame, task)
            handle = holder.handles.get(task, False)
            if handle is None:
                _used_twice()
            if handle is False or handle not in frame.values[task]:
                raise CheckpointError(f"{_PREFIX}: a saved tensor was not computed again")
            value = frame.values[task][handle]
            holder.handles[task] = None
            return value
        except CheckpointError as error:
            if report is not None:
                report(error)
            raise
    return saved_tensors_hooks(pack, unpack)


def _used_twice() -> None:
    if _group.get() is not None:
        raise CheckpointError(
            f"{_PREFIX} (use_reentrant=False): Performing two backward calls that overlap (i.e. "
            "require the same saved activations in order to compute gradients) is not allowed "
            "while under the torch.utils.checkpoint.GraphExecGroup context.")
    raise CheckpointError(
        f"{_PREFIX}: Unpack is being triggered for a tensor that was already unpacked once. If you "
        "are calling ctx.saved_tensors in backward, make sure to do so only once: the values that "
        "were computed again are freed when they are used.")


def _run_again(frame: _Frame, task: Any) -> None:
    """Fill all holders for one pass."""
    inputs = frame.inputs.saved_tensors

    def pack(tensor: Tensor) -> Tensor:
        value = tensor.detach() if tensor.requires_grad else tensor
        place = frame.counts[task]
        frame.counts[task] += 1
        if place >= len(frame.holders):
            if not frame.forward_done:
                frame.ignore_mismatch = True        # backward inside of the function itself
                return value
            raise CheckpointError(f"{_PREFIX}: trying to save more tensors during recomputation "
                                  f"than during the original forward pass.{_TIP}")
        holder = frame.holders[place]()
        if holder is not None:
            if holder.handles.get(task) is None:
                holder.handles[task] = _Handle()
            frame.values[task][holder.handles[task]] = value
        if frame.early_stop and frame.counts[task] == len(frame.holders):
            raise _Stop
        return value

    def run() -> None:
        with saved_tensors_hooks(pack, lambda value: value), flambeau.enable_grad():
            try:
                frame.again(*inputs)
            except _Stop:
                pass
    restoring(run)
    frame.done.add(task)
    if frame.metadata_of is not None:
        frame.check(task)


def _metadata(tensor: Tensor) -> dict[str, Any]:
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


class _OpLog:
    """What ran, for error messages."""

    def __init__(self) -> None:
        self.runs: list[list[tuple[str, str]]] = []

    def context(self) -> Any:
        import traceback

        log: list[tuple[str, str]] = []
        self.runs.append(log)

        class Logging(TorchDispatchMode):
            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (),
                                   kwargs: Any = None) -> Any:
                stack = traceback.format_stack()[:-1]
                kept = [s for s in stack if "/flambeau/" not in s.split("\n")[0]]
                result = func(*args, **(kwargs or {}))
                log.append((f"{func} -> {_described(result)}", "".join(kept)))
                return result
        return Logging()

    def report(self, error: CheckpointError) -> None:
        parts = ["An error happened while unpacking tensors; these are the logs of the latest "
                 "computation, because you passed `debug=True` to "
                 "`torch.utils.checkpoint.checkpoint()`.\n"]
        first, last = self.runs[0], self.runs[-1]
        for title, log in (("original forward", first), ("recomputation", last)):
            parts.append(f"\n==== Stack traces of the operators that ran in the {title} ====\n")
            parts += [f"\n{text}   ({i} of {len(log)} in {title.split()[0]})\n{stack}"
                      for i, (text, stack) in enumerate(log, 1)]
        for title, log in (("original forward", first), ("recomputation", last)):
            parts.append(f"\n==== Log of the operators in the {title} ====\n")
            parts += [f"{text}\n" for text, _ in log]
        parts.append(
            "\nYou are seeing this error because you passed `debug=True` to checkpoint and tensors "
            "to be saved during the original forward and recomputation differ between those. The "
            "logs above show where: look for the first op in which they differ, and find in its "
            f"stack trace what makes it run differently.\n\n{error}")
        raise CheckpointError("".join(parts)) from error


def _described(result: Any) -> str:
    if isinstance(result, Tensor):
        return f"{result.dtype}{list(result.shape)}"
    if isinstance(result, (tuple, list)):
        return "(" + ", ".join(map(_described, result)) + ")"
    return repr(result)

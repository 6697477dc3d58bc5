"""The profiler under the name of its older form: it records the same."""
from __future__ import annotations

from typing import Any

from flambeau.autograd import profiler
from flambeau.autograd.profiler import EventList, FunctionEvent  # noqa: F401

__all__ = ["profile"]


class profile(profiler.profile):
    """`autograd.profiler.profile` with the arguments that it once had."""

    def __init__(self, enabled: bool = True, *, use_cuda: bool = False,
                 record_shapes: bool = False, with_flops: bool = False,
                 profile_memory: bool = False, with_stack: bool = False,
                 with_modules: bool = False):
        super().__init__(enabled, use_cuda=use_cuda, record_shapes=record_shapes,
                         with_flops=with_flops, profile_memory=profile_memory,
                         with_stack=with_stack, with_modules=with_modules)

    def export_chrome_trace(self, path: str) -> None:
        """Write the events as JSON for Perfetto and `chrome://tracing`; packed if for a .gz."""
        super().export_chrome_trace(path)

    def key_averages(self, group_by_input_shape: bool = False,
                     group_by_stack_n: int = 0) -> Any:
        """Sums over the events of one name."""
        return super().key_averages(group_by_input_shape, group_by_stack_n)

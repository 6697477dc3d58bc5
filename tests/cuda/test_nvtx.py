"""Marks for NVIDIA's profiler are not there."""
import pytest

import flambeau as torch

nvtx = torch.cuda.nvtx


@pytest.mark.parametrize("call", [
    lambda: nvtx.range_push("a"), nvtx.range_pop, lambda: nvtx.mark("a"),
    lambda: nvtx.range("a {}", 1).__enter__()])
def test_calls_say_so(call):
    with pytest.raises(RuntimeError, match=r"NVTX functions not installed. Are you sure you have a "
                                           "CUDA build?"):
        call()

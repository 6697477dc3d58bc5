"""NVIDIA's profiler needs a CUDA device."""
import pytest

import flambeau as torch


@pytest.mark.parametrize("call", [torch.cuda.profiler.start, torch.cuda.profiler.stop,
                                  lambda: torch.cuda.profiler.profile().__enter__()])
def test_calls_say_so(call):
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        call()

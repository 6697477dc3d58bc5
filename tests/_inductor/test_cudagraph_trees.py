"""Recorded graphs of kernels: steps begin, nothing is recorded without a GPU."""
import pytest

import flambeau as torch
from flambeau._inductor import cudagraph_trees

trees = pytest.mark.skipif(torch.__name__ == "torch", reason="PyTorch records graphs")


def test_steps_can_be_marked():
    assert torch.compiler.cudagraph_mark_step_begin() is None
    assert cudagraph_trees.mark_step_begin() is None
    assert cudagraph_trees.reset_cudagraph_trees() is None


@trees
@pytest.mark.parametrize("name", ["CUDAGraphTreeManager", "cudagraphify", "CUDAGraphNode"])
def test_what_is_missing_is_named(name):
    with pytest.raises(NotImplementedError, match=f"{name}: CUDA graphs need a GPU"):
        getattr(cudagraph_trees, name)(0)

"""Recorded graphs of kernels on a GPU: there is none."""
from flambeau._dynamo._absent import absent_class, absent_function

_GPU = "CUDA graphs need a GPU"
_use_cuda_memory_pool_manager = absent_function(__name__, "_use_cuda_memory_pool_manager", _GPU)
CUDAGraphTreeManager = absent_class(__name__, "CUDAGraphTreeManager", _GPU)
CUDAGraphNode = absent_class(__name__, "CUDAGraphNode", _GPU)
cudagraphify = absent_function(__name__, "cudagraphify", _GPU)
cudagraphify_impl = absent_function(__name__, "cudagraphify_impl", _GPU)


def mark_step_begin() -> None:
    """Has no recorded graphs to tell."""


def reset_cudagraph_trees() -> None:
    """Has no recorded graphs to forget."""


__all__ = ["CUDAGraphNode", "CUDAGraphTreeManager", "cudagraphify", "mark_step_begin",
           "reset_cudagraph_trees"]

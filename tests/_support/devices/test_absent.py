"""Devices that are not there answer as in PyTorch's builds for the CPU (recorded from 2.13)."""

import importlib

import pytest

import flambeau as torch

REFUSED = [
    ("cuda", "init", AssertionError, "not compiled with CUDA"),
    ("cuda.memory", "mem_get_info", AssertionError, "not compiled with CUDA"),
    ("cuda.memory", "_record_memory_history", AttributeError, "_cuda_record_memory_history"),
    ("cuda.nvtx", "range_pop", RuntimeError, "NVTX functions not installed"),
    ("cuda.sparse", "FloatTensor", TypeError, r"type torch\.cuda\.sparse\.FloatTensor not avail"),
    ("cuda.profiler", "start", AssertionError, "not compiled with CUDA"),
    ("cuda.nccl", "version", AssertionError, "not compiled with CUDA"),
    ("xpu", "synchronize", AssertionError, "Torch not compiled with XPU enabled"),
    ("xpu", "utilization", ImportError, "pyzes is required"),
    ("xpu", "Stream", RuntimeError, "Tried to instantiate dummy base class Stream"),
    ("mps", "synchronize", RuntimeError, r"Cannot execute deviceSynchronize\(\) without MPS"),
    ("mtia", "current_device", RuntimeError, r"Cannot execute getCurrentDevice\(\) without MTIA"),
    ("mtia", "init", AssertionError, "Torch not compiled with MTIA enabled"),
    ("profiler.itt", "range_pop", RuntimeError, "ITT functions not installed")]


@pytest.mark.parametrize("module, name, error, message", REFUSED)
def test_what_needs_a_device_raises(module, name, error, message):
    function = getattr(importlib.import_module(f"flambeau.{module}"), name)
    with pytest.raises(error, match=message):
        function()


def test_names_that_libraries_catch_and_ask_for():
    assert torch.cuda.OutOfMemoryError is torch.OutOfMemoryError
    assert torch.cuda.AcceleratorError is torch.AcceleratorError
    assert not torch.cuda._initialized and not torch.cuda._is_in_bad_fork()
    index = torch.cuda._get_device_index
    assert (index("cuda:1"), index(3), index(None, True), index("cpu", allow_cpu=True)) == \
        (1, 3, None, -1)
    with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
        index("cpu")
    assert torch.cuda._get_device(1) == torch.device("cuda:1")
    with pytest.raises(RuntimeError, match="without MPS backend"):
        torch.mps.Event()
    with pytest.raises(RuntimeError, match="without MTIA backend"), torch.mtia.device(0):
        pass


def test_what_asks_is_answered():
    from flambeau.cuda import graphs, memory, nccl, random, streams
    assert memory.memory_allocated() == 0 and random.get_rng_state_all() == []
    assert nccl.is_available([]) is False and graphs.CUDAGraph is torch.cuda.CUDAGraph
    assert streams.Stream is torch.cuda.Stream
    assert torch.xpu.memory_stats() == {} and torch.xpu.get_arch_list() == []
    assert torch.xpu.device_count() == 0 and torch.xpu.get_gencode_flags() == ""
    assert torch.mtia.is_bf16_supported() and isinstance(torch.mtia.Stream(), torch.Stream)
    assert torch.mps.device_count() == 0
    with torch.xpu.stream(None), torch.xpu.device(None), torch.xpu.device_of(torch.ones(1)):
        pass
    with pytest.raises(AssertionError), torch.xpu.device(0):
        pass


def test_switches_of_attention():
    cuda = torch.backends.cuda
    assert cuda.flash_sdp_enabled() and cuda.math_sdp_enabled()
    with pytest.warns(FutureWarning, match="sdp_kernel.* is deprecated"), \
            cuda.sdp_kernel(enable_flash=False):
        assert not cuda.flash_sdp_enabled() and cuda.mem_efficient_sdp_enabled()
    cuda.enable_math_sdp(False)
    assert not cuda.math_sdp_enabled()
    cuda.enable_math_sdp(True)
    with pytest.raises(RuntimeError, match="expects a bool, but got int"):
        cuda.enable_flash_sdp(1)
    assert not cuda.can_use_flash_attention(cuda.SDPAParams(None, None, None, None, 0.0, False))
    with pytest.raises(RuntimeError, match="Unknown input value"):
        cuda.preferred_blas_library("mine")
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        cuda.nothing
    with pytest.raises(RuntimeError, match="expected 0 <= device index < 0"):
        cuda.cufft_plan_cache[0]


def test_switches_of_backends():
    assert torch.backends.nnpack.set_flags(False) == (True,)
    assert torch.backends.nnpack.set_flags(_enabled=True) == (False,)
    assert torch.backends.xnnpack.enabled is False and not torch.backends.kleidiai.is_available()
    torch._C._set_cudnn_benchmark(True)
    assert torch.backends.cudnn.benchmark and torch._C._get_cudnn_benchmark()
    torch._C._set_cudnn_benchmark(False)


def test_flash_attention_is_not_there():
    attention = torch.nn.attention
    with pytest.raises(ValueError, match="Unknown flash attention impl 'FA9'"):
        attention.activate_flash_attention_impl("FA9")
    with pytest.raises(ModuleNotFoundError, match="No module named 'flash_attn'"):
        attention.activate_flash_attention_impl("FA4")
    from flambeau.nn.attention import varlen
    x, ends = torch.ones(4, 2, 8), torch.tensor([0, 4], dtype=torch.int32)
    with pytest.raises(NotImplementedError, match=r"'aten::_flash_attention_forward' .* 'CPU'"):
        varlen.varlen_attn(x, x, x, ends, ends, 4, 4)
    assert varlen.AuxRequest().lse is False

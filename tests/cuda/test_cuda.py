"""CUDA where there is none: what asks is answered, what needs a device says so."""

import pytest

import flambeau as torch


def test_answers_of_cuda():
    assert (torch.cuda.cudaStatus.SUCCESS, torch.cuda.cudaStatus.ERROR_NOT_READY) == (0, 34)


def test_what_waits_for_a_device_is_not_called():
    assert torch.cuda._lazy_call(lambda: 1 / 0) is None
    with pytest.raises(AssertionError, match="not compiled with CUDA"):
        torch.cuda._lazy_init()


@pytest.mark.parametrize("ask, answer", [
    ("is_available", False), ("is_initialized", False), ("is_bf16_supported", False),
    ("device_count", 0), ("get_arch_list", []), ("get_gencode_flags", ""),
    ("get_rng_state_all", []), ("empty_cache", None), ("memory_stats", {}),
])
def test_questions_are_answered(ask, answer):
    assert getattr(torch.cuda, ask)() == answer


@pytest.mark.parametrize("call", [
    torch.cuda.synchronize, torch.cuda.current_device, torch.cuda.get_device_name,
    torch.cuda.current_stream, torch.cuda.get_rng_state, torch.cuda.ipc_collect,
])
def test_what_needs_a_device_says_so(call):
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        call()

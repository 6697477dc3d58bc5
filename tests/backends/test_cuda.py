"""Switches of CUDA's libraries where there is no CUDA."""

import pytest

import flambeau as torch
from flambeau.nn.attention import SDPBackend, sdpa_kernel

cuda = torch.backends.cuda
SWITCHES = ["flash_sdp", "mem_efficient_sdp", "math_sdp", "cudnn_sdp"]


@pytest.mark.parametrize("name", SWITCHES)
def test_ways_to_compute_attention_are_switched(name):
    is_enabled, enable = getattr(cuda, f"{name}_enabled"), getattr(cuda, f"enable_{name}")
    assert is_enabled() is True
    try:
        enable(False)
        assert is_enabled() is False
    finally:
        enable(True)
    with pytest.raises(RuntimeError, match=r"expects a bool, but got (%s)?int"):
        enable(1)


def test_the_older_context_allows_some_ways():
    with pytest.warns(FutureWarning, match="sdp_kernel.* is deprecated"):
        context = cuda.sdp_kernel(enable_flash=False, enable_cudnn=False)
        with context:
            assert [getattr(cuda, f"{name}_enabled")() for name in SWITCHES] == [
                False, True, True, False]
    assert all(getattr(cuda, f"{name}_enabled")() for name in SWITCHES)


def test_the_context_of_attention_sets_the_same_switches():
    with sdpa_kernel(SDPBackend.MATH):
        assert cuda.math_sdp_enabled() and not cuda.flash_sdp_enabled()


def test_sums_in_half_precision_are_remembered():
    assert cuda.fp16_bf16_reduction_math_sdp_allowed() is False
    cuda.allow_fp16_bf16_reduction_math_sdp(True)
    try:
        assert cuda.fp16_bf16_reduction_math_sdp_allowed() is True
    finally:
        cuda.allow_fp16_bf16_reduction_math_sdp(False)


def test_arguments_of_attention():
    q, k, v = torch.ones(3, 1, 2, 4, 8)
    params = cuda.SDPAParams(q, k, v, None, 0.5, True, False)
    assert params.query is q and params.key is k and params.value is v
    assert (params.attn_mask, params.dropout, params.is_causal) == (None, 0.5, True)
    assert params.enable_gqa is False
    assert not cuda.is_flash_attention_available()
    assert not cuda.can_use_flash_attention(params)
    assert not cuda.can_use_efficient_attention(params)


def test_decompositions_have_a_preferred_library():
    assert cuda.preferred_linalg_library().name == "Default"
    assert cuda.preferred_linalg_library("default").value == 0
    with pytest.raises(RuntimeError, match="not been compiled with cuSOLVER"):
        cuda.preferred_linalg_library("cusolver")
    with pytest.raises(RuntimeError, match="Choose from: default, cusolver, magma"):
        cuda.preferred_linalg_library("mine")
    with pytest.raises(RuntimeError, match="Unknown input value type"):
        cuda.preferred_linalg_library(3)


def test_products_have_a_preferred_library():
    assert cuda.preferred_blas_library().name == "Cublas"
    assert cuda.preferred_blas_library("ck").name == "Ck"
    assert cuda.preferred_blas_library("default").name == "Cublas"
    with pytest.raises(RuntimeError, match="has not been compiled with cuBLASLt"):
        cuda.preferred_blas_library("hipblaslt")
    with pytest.raises(RuntimeError, match="Unknown input value"):
        cuda.preferred_blas_library("abacus")


def test_plans_of_fourier_transforms():
    with pytest.raises(RuntimeError, match="cufft_plan_cache: expected 0 <= device index < 0"):
        cuda.cufft_plan_cache[0]
    with pytest.raises(AssertionError, match="not compiled with CUDA"):
        cuda.cufft_plan_cache.size


def test_switches_are_cited_by_their_names():
    from flambeau.backends import cuda
    for kind in ("flash", "math", "mem_efficient", "cudnn"):
        for name in (f"{kind}_sdp_enabled", f"enable_{kind}_sdp"):
            assert getattr(cuda, name).__qualname__ == name

"""What `torch.backends.cuda` answers where there is no CUDA: switches of attention are kept, plans
of Fourier transforms are those of no device."""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

from flambeau._support.c_functions import type_name
from flambeau._support.deprecation import deprecated
from flambeau._support.own_methods import shown_as


def _attention_switch(name: str, short: str) -> tuple[Callable[[], bool], Callable[[bool], None]]:
    """Whether attention may be computed so, and the function that says so."""
    @shown_as(f"{short}_sdp_enabled")
    def is_enabled() -> bool:
        """May attention be computed in this way? What the `enable_` function was told."""
        from flambeau.nn import attention
        return attention.is_enabled(attention.SDPBackend[name])

    @shown_as(f"enable_{short}_sdp")
    def enable(enabled: bool) -> None:
        """Allow this way to compute attention, or not; RuntimeError for what is no bool.

        It holds from now on; `torch.nn.attention.sdpa_kernel` says it for a block. The choice is
        kept and asked for, and on a CPU decides between kernels with the same result.
        """
        from flambeau.nn import attention
        if not isinstance(enabled, bool):
            raise RuntimeError(f"set_sdp_use_{name.lower()} expects a bool, but got "
                               f"{type_name(enabled)}")
        attention.enable(attention.SDPBackend[name], enabled)
    return is_enabled, enable


flash_sdp_enabled, enable_flash_sdp = _attention_switch("FLASH_ATTENTION", "flash")
math_sdp_enabled, enable_math_sdp = _attention_switch("MATH", "math")
mem_efficient_sdp_enabled, enable_mem_efficient_sdp = _attention_switch(
    "EFFICIENT_ATTENTION", "mem_efficient")
cudnn_sdp_enabled, enable_cudnn_sdp = _attention_switch("CUDNN_ATTENTION", "cudnn")


@deprecated("`torch.backends.cuda.sdp_kernel()` is deprecated. In the future, this context manager "
            "will be removed. Please see `torch.nn.attention.sdpa_kernel()` for the new context "
            "manager, with updated signature.")
@contextlib.contextmanager
def sdp_kernel(enable_flash: bool = True, enable_math: bool = True,
               enable_mem_efficient: bool = True, enable_cudnn: bool = True) -> Iterator[Any]:
    """Allow only some ways to compute attention inside: the older form of
    `torch.nn.attention.sdpa_kernel`."""
    from flambeau.nn.attention import SDPBackend, sdpa_kernel
    wanted = [backend for backend, on in (
        (SDPBackend.FLASH_ATTENTION, enable_flash), (SDPBackend.MATH, enable_math),
        (SDPBackend.EFFICIENT_ATTENTION, enable_mem_efficient),
        (SDPBackend.CUDNN_ATTENTION, enable_cudnn)) if on]
    with sdpa_kernel(wanted) as context:
        yield context


_math_in_half = [False]


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Remembered: whether sums in attention may be taken in half precision."""
    _math_in_half[0] = bool(enabled)


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """What `allow_fp16_bf16_reduction_math_sdp` was told."""
    return _math_in_half[0]


class SDPAParams:
    """The arguments of attention, for questions about backends."""

    def __init__(self, query: Any, key: Any, value: Any, attn_mask: Any, dropout: float,
                 is_causal: bool, enable_gqa: bool = False):
        self.query, self.key, self.value, self.attn_mask = query, key, value, attn_mask
        self.dropout, self.is_causal, self.enable_gqa = dropout, is_causal, enable_gqa


def is_flash_attention_available() -> bool:
    """False: there is no CUDA."""
    return False


def can_use_flash_attention(params: SDPAParams, debug: bool = False) -> bool:
    """False: there is no CUDA."""
    return False


can_use_efficient_attention = can_use_cudnn_attention = can_use_flash_attention
is_ck_sdpa_available = is_flash_attention_available


class _Linalg(Enum):
    """What decomposes matrices on CUDA."""

    Default = 0
    Cusolver = 1
    Magma = 2


_Linalg.__name__ = _Linalg.__qualname__ = "_LinalgBackend"
_LinalgBackends = {backend.name.lower(): backend for backend in _Linalg}


def preferred_linalg_library(backend: str | _Linalg | None = None) -> Any:
    """What decomposes matrices on CUDA: the default, as there is none of the others.

    >>> torch.backends.cuda.preferred_linalg_library("default")
    <_LinalgBackend.Default: 0>

    Raises:
        RuntimeError: for one that is not there, or no such name.
    """
    wanted = _Linalg.Default if backend is None else backend
    if isinstance(wanted, str):
        if wanted not in _LinalgBackends:
            raise RuntimeError(f"Unknown input value. Choose from: {', '.join(_LinalgBackends)}.")
        wanted = _LinalgBackends[wanted]
    if not isinstance(wanted, _Linalg):
        raise RuntimeError("Unknown input value type.")
    if wanted is not _Linalg.Default:
        name = {"Cusolver": "cuSOLVER", "Magma": "MAGMA"}[wanted.name]
        raise RuntimeError(f"Cannot set preferred backend to {name} if PyTorch has not been "
                           f"compiled with {name}.")
    return wanted


class _Blas(Enum):
    """What computes products on CUDA."""

    Default = 0
    Cublas = 1
    Cublaslt = 2
    Ck = 3


_BlasBackends = {"default": _Blas.Default, "cublas": _Blas.Cublas, "hipblas": _Blas.Cublas,
                 "cublaslt": _Blas.Cublaslt, "hipblaslt": _Blas.Cublaslt, "ck": _Blas.Ck}
_preferred = {"blas": _Blas.Cublas}


def preferred_blas_library(backend: str | None = None) -> Any:
    """Remembered: what computes products on CUDA."""
    if backend is not None:
        if backend not in _BlasBackends:
            raise RuntimeError(f"Unknown input value. Choose from: {', '.join(_BlasBackends)}.")
        wanted = _BlasBackends[backend]
        if wanted is _Blas.Cublaslt:
            raise RuntimeError("Cannot set preferred backend to cuBLASLt if PyTorch has not been "
                               "compiled with cuBLASLt.")
        _preferred["blas"] = _Blas.Cublas if wanted is _Blas.Default else wanted
    return _preferred["blas"]


def preferred_rocm_fa_library(backend: str | None = None) -> Any:
    """What computes attention on ROCm: the default, as there is none."""
    return _Blas.Default


class cuFFTPlanCacheManager:
    """The plans of Fourier transforms of each device: there are none."""

    def __getitem__(self, device: Any) -> Any:
        raise RuntimeError("cufft_plan_cache: expected 0 <= device index < 0, but got device with "
                           f"index {device}")

    def __getattr__(self, name: str) -> Any:
        if name in ("size", "max_size", "clear"):
            raise AssertionError("Torch not compiled with CUDA enabled")
        raise AttributeError(name)


cufft_plan_cache = cuFFTPlanCacheManager()

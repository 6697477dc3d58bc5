"""Triton, which compiles kernels for accelerators: there is no device that it could compile for."""
from __future__ import annotations

import functools
from typing import Any

from flambeau.utils._import_utils import _check_module_exists


@functools.cache
def has_triton_package() -> bool:
    """Is Triton installed?"""
    return _check_module_exists("triton")


@functools.cache
def get_triton_version(fallback: tuple[int, int] = (0, 0)) -> tuple[int, int]:
    """Its version, major and minor."""
    if not has_triton_package():
        return fallback
    import triton
    major, minor = triton.__version__.split(".")[:2]
    return int(major), int(minor)


def has_triton() -> bool:
    """False: there is no device for its kernels."""
    return False


has_triton_experimental_host_tma = has_triton_tensor_descriptor_host_tma = has_triton
has_triton_tma = has_triton_tma_device = has_triton_stable_tma_api = has_triton
has_datacenter_blackwell_tma_device = has_triton


def triton_backend() -> Any:
    """Raises: there is no device, so there is no backend."""
    import triton  # noqa: F401
    raise RuntimeError("0 active drivers ([]). There should only be one.")


def triton_hash_with_backend() -> str:
    """Raises: there is no backend."""
    return triton_backend()

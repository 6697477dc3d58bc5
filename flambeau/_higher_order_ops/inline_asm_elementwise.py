"""Assembler for GPUs inside a program: `inline_asm_elementwise`."""
from __future__ import annotations

from typing import Any

from flambeau import Tensor

__all__ = ["inline_asm_elementwise"]


def inline_asm_elementwise(*inputs: Tensor, asm_str: str, constraints: str, dtype: Any,
                           is_pure: bool = True, pack: int = 1) -> Tensor:
    """The results of lines of PTX, run for the elements of `inputs`; there is no GPU for it.

    Raises:
        ValueError: no input.
        RuntimeError: the inputs are tensors of the CPU.
    """
    if not inputs:
        raise ValueError("inline_asm_elementwise requires at least one input tensor")
    raise RuntimeError("inline_asm_elementwise only supports CUDA tensors")

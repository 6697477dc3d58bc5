"""How some ops of tensors are written with version 9 of ONNX's ops."""
from __future__ import annotations

from collections.abc import Sequence


def _prepare_onnx_paddings(dim: int, pad: Sequence[int]) -> list[int]:
    """Padding in ONNX's order, all starts and then all ends, first dimension first.

    >>> _prepare_onnx_paddings(3, [1, 2, 3, 4])        # the last dimension by 1 and 2
    [0, 3, 1, 0, 4, 2]
    """
    paddings = [*pad, *[0] * (dim * 2 - len(pad))]
    return [*paddings[-2::-2], *paddings[-1::-2]]


__all__: list[str] = []

"""The bilinear map of two inputs."""
from __future__ import annotations

import flambeau
from flambeau.core.op import public
from flambeau.core.promotion import c_name
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import op
from flambeau.kernels.refused import refuse
from flambeau.ops.node_names import one_node


@op("bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor", out=False,
    method=False, autocast="untouched")
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """y_o = x₁ᵀ W_o x₂ + b_o: `input1` (..., i), `input2` (..., j), `weight` (o, i, j).

    >>> import flambeau
    >>> one = flambeau.ones(2, 3)
    >>> flambeau.bilinear(one, one, flambeau.ones(1, 3, 3))
    tensor([[9.],
            [9.]])
    """
    given = {"input1": input1, "input2": input2, "weight": weight}
    if bias is not None:
        given["bias"] = bias
    if len({t._array.dtype for t in given.values()}) > 1:
        found = {name: c_name(tensor.dtype) for name, tensor in given.items()}
        raise RuntimeError("All tensors must have the same dtype, got "
                           + ", ".join([f"{name}: {kind}" for name, kind in found.items()]))
    a, b, w = input1._array.shape, input2._array.shape, weight._array.shape
    if len(a) != len(b):
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {len(a)} and {len(b)}")
    for d, (m, n) in enumerate(zip(a[:-1], b[:-1])):
        if m != n:
            raise RuntimeError(f"bilinear(): input batch dimensions do not match at dim {d}: got "
                               f"{m} and {n}")
    for name, size, dim in (("input1", input1.size(-1), 1), ("input2", input2.size(-1), 2)):
        expected = weight.size(dim)
        if size != expected:
            raise RuntimeError(f"bilinear(): {name} size does not match weight size: got {size} "
                               f"but expected {expected}")
    if bias is not None and bias._array.shape[0] != w[0]:
        raise RuntimeError(f"bilinear(): bias size does not match weight size: got "
                           f"{bias._array.shape[0]} but expected {w[0]}")
    refuse(input1._array, "bUW8", "bmm")
    rows = input1.reshape(-1, a[-1]) if input1._array.size else input1.reshape(0, a[-1])
    second = input2.reshape(rows._array.shape[0], w[2])
    result = _products(rows, weight, second).reshape(*a[:-1], w[0])
    return result if bias is None else result + bias


public["nn.functional"]["bilinear"] = bilinear


@one_node(name="TrilinearBackward0")
def _products(rows: Tensor, weight: Tensor, second: Tensor) -> Tensor:
    """(n, i), (o, i, j) and (n, j) to (n, o)."""
    n, (o, i, j) = rows._array.shape[0], weight._array.shape
    # (n, j) by (j, o · i), then each sample's (o, i) by its first input
    half = flambeau.mm(second.contiguous(), weight.reshape(o * i, j).t()).reshape(n, o, i)
    return flambeau.bmm(half, rows.unsqueeze(2)).squeeze(2)


__all__ = ["bilinear"]

"""Jacobians for `gradcheck`: by finite differences, by reverse mode and by forward mode.

All are matrices of one row an element of the input and one column an element of the output. The
derivative of a real output by a complex input z = x + iy is d/dx + i d/dy, as `backward` gives it.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.autograd import forward_ad
from flambeau.autograd.differentiate import grad
from flambeau.autograd.grad_mode import enable_grad, no_grad
from flambeau.ops.quantized.mkldnn import uncovered


def is_differentiable(x: Any) -> bool:
    return isinstance(x, Tensor) and x.requires_grad


def is_inexact(x: Any) -> bool:
    return x.is_floating_point() or x.is_complex()


def is_sparse(x: Tensor) -> bool:
    return x.layout is not flambeau.strided and not x.is_mkldnn


def as_tuple(x: Any) -> tuple[Any, ...]:
    if isinstance(x, tuple):
        return x
    return tuple(x) if isinstance(x, list) else (x,)


def differentiable_outputs(outputs: Any) -> tuple[Tensor, ...]:
    return tuple(o for o in as_tuple(outputs) if o.requires_grad)


def inexact_outputs(outputs: Any) -> tuple[Tensor, ...]:
    return tuple(o for o in as_tuple(outputs) if isinstance(o, Tensor) and is_inexact(o))


def elements(x: Tensor) -> Tensor:
    """The memory of a tensor's elements: of a sparse one those that it stores."""
    if x.is_mkldnn:
        return uncovered(x)
    if x.layout is flambeau.sparse_coo:
        return x._values().data
    return (x.values() if is_sparse(x) else x).data


def stored(gradient: Tensor, like: Tensor) -> Tensor:
    """The elements of `gradient` that belong to those of `like`, in a row."""
    if (gradient.layout is not like.layout and is_sparse(gradient)) or gradient.is_mkldnn:
        gradient = gradient.to_dense()
    if not is_sparse(like):
        return gradient.reshape(-1)
    dense = gradient if not is_sparse(gradient) else gradient.to_dense()
    if like.layout is flambeau.sparse_coo:
        return dense[tuple(like._indices())].reshape(-1)
    coordinates = _coordinates(like)
    return dense[coordinates].reshape(-1)


def _coordinates(like: Tensor) -> tuple[Tensor, ...]:
    """Where the elements stored by a compressed tensor are."""
    with no_grad():
        n = elements(like).numel()
        numbered = like.detach().clone()
        elements(numbered).copy_(flambeau.arange(1, n + 1).reshape(elements(numbered).shape))
        flat = numbered.to_dense().reshape(-1)
        order = (flat.real if flat.is_complex() else flat).argsort()[flat.numel() - n:]
        return flambeau.unravel_index(order, tuple(like.shape))


# ---- finite differences ------------------------------------


_CHANGED = ("Expected `func` to return outputs with the same {} when inputs are perturbed on the "
            "elements by eps, but got {} and {}")


class Perturbed:
    """Runs a function with one input displaced in place, and puts it back."""

    def __init__(self, function: Callable[[], Sequence[Tensor]], x: Tensor, eps: float):
        self.function, self.x, self.eps = function, elements(x), eps

    def derivative(self, direction: Any, place: Any = None) -> list[Tensor]:
        """Central difference of all outputs: in `direction`, or of the element at `place`."""
        with no_grad():
            step = direction * self.eps
            part = self.x if place is None else self.x[place]
            before = part.clone()
            try:
                _set(self.x, place, before - step)
                low = self._values()
                _set(self.x, place, before + step)
                high = self._values()
            finally:
                _set(self.x, place, before)
            for a, b in zip(low, high):
                if a.shape != b.shape:
                    raise AssertionError(_CHANGED.format("shape", a.shape, b.shape))
                if a.dtype is not b.dtype:
                    raise AssertionError(_CHANGED.format("dtype", a.dtype, b.dtype))
            return [((b - a) / (2 * self.eps)).reshape(-1) for a, b in zip(low, high)]

    def _values(self) -> list[Tensor]:
        with enable_grad():
            outputs = self.function()
        return [o.detach().clone() for o in outputs]


def _set(x: Tensor, place: Any, value: Any) -> None:
    if place is None:
        x.copy_(value)
    else:
        x[place] = value


def _check_perturbed(outputs: Sequence[Tensor], slopes: list[Tensor]) -> None:
    for o, s in zip(outputs, slopes):
        if o.numel() != s.numel():
            raise AssertionError(_CHANGED.format("shape", f"{o.numel()} elements", s.numel()))
        if o.dtype is not s.dtype:
            raise AssertionError(_CHANGED.format("dtype", o.dtype, s.dtype))


def numerical_columns(function: Any, x: Tensor, outputs: Sequence[Tensor],
                      eps: float) -> list[Tensor]:
    """The Jacobian of each output by `x`."""
    probe = Perturbed(function, x, eps)
    rows: list[list[Tensor]] = [[] for _ in outputs]
    for place in _places(probe.x.shape):
        slopes = probe.derivative(1, place)
        _check_perturbed(outputs, slopes)
        if x.is_complex():
            slopes = [a + 1j * b for a, b in zip(slopes, probe.derivative(1j, place))]
        for row, slope in zip(rows, slopes):
            row.append(slope)
    return [flambeau.stack(row) if row else flambeau.zeros(0, o.numel(), dtype=o.dtype)
            for row, o in zip(rows, outputs)]


def _places(shape: Any) -> Any:
    from itertools import product
    return product(*[range(n) for n in shape])


def numerical_along(function: Any, x: Tensor, outputs: Sequence[Tensor], eps: float,
                    u: Any) -> list[Tensor]:
    """The change of each output in the direction `u` of `x` (a pair of directions, of the real and
    the imaginary part, for a complex `x`)."""
    probe = Perturbed(function, x, eps)
    if not x.is_complex():
        slopes = probe.derivative(u.reshape(probe.x.shape))
        _check_perturbed(outputs, slopes)
        return slopes
    real, imaginary = (part.reshape(probe.x.shape) for part in u)
    slopes = probe.derivative(real.to(x.dtype))
    _check_perturbed(outputs, slopes)
    return [a + 1j * b for a, b in zip(slopes, probe.derivative(imaginary * 1j))]


# ---- reverse mode ------------------------------------


def pullback(output: Tensor, inputs: Sequence[Tensor]) -> Callable[[Tensor], Sequence[Any]]:
    """The function from a gradient of `output` to those of `inputs` (None where there is none)."""
    def run(weight: Tensor) -> Sequence[Any]:
        return grad(output, inputs, weight, retain_graph=True, allow_unused=True)
    return run


def check_gradient(g: Any, x: Tensor) -> tuple[bool, bool]:
    """Does a gradient have the size and the type of its input?"""
    return (True, True) if g is None else (tuple(g.shape) == tuple(x.shape), g.dtype is x.dtype)


def analytical_columns(run: Any, inputs: Sequence[Tensor],
                       output: Tensor) -> tuple[list[Tensor], bool, bool]:
    """The Jacobian of `output` by each of `inputs`; and were all sizes, and all types, right?"""
    columns: list[list[Any]] = [[] for _ in inputs]
    sizes = types = True
    weight = flambeau.zeros_like(output, memory_format=flambeau.contiguous_format)
    flat = weight.view(-1)
    for i in range(flat.numel()):
        flat.zero_()
        flat[i] = 1
        for column, x, g in zip(columns, inputs, run(weight.clone())):
            size, kind = check_gradient(g, x)
            sizes, types = sizes and size, types and kind
            column.append(stored(g.detach(), x) if g is not None and size else
                          flambeau.zeros(elements(x).numel(), dtype=x.dtype))
    found = [flambeau.stack([c.to(x.dtype) for c in column], 1) if column
             else flambeau.zeros(elements(x).numel(), 0, dtype=x.dtype)
             for column, x in zip(columns, inputs)]
    return found, sizes, types


def analytical_along(run: Any, inputs: Sequence[Tensor], v: Tensor,
                     us: Sequence[Any]) -> tuple[list[Any], bool, bool]:
    """v^T J u for each of `inputs`."""
    found: list[Any] = []
    sizes = types = True
    for x, g, u in zip(inputs, run(v), us):
        size, kind = check_gradient(g, x)
        sizes, types = sizes and size, types and kind
        if g is None or not size:
            found.append(flambeau.zeros((), dtype=x.dtype))
            continue
        row = stored(g.detach(), x)
        if x.is_complex():
            row = row if row.is_complex() else row.to(x.dtype)
            found.append(row.real.dot(u[0]) + 1j * row.imag.dot(u[1]))
        else:
            row = row.real if row.is_complex() else row
            found.append(row.to(u.dtype).dot(u))
    return found, sizes, types


# ---- forward mode ------------------------------------


def run_forward(function: Any, inputs: Sequence[Any], tangents: dict[int, Tensor]) -> list[Any]:
    """The tangents of all inexact outputs, given those of some inputs by position; None where an
    output has none."""
    with forward_ad.dual_level():
        duals = []
        for i, x in enumerate(inputs):
            if isinstance(x, Tensor) and x.requires_grad:
                x = x.detach()
            duals.append(forward_ad.make_dual(x, tangents[i].detach()) if i in tangents else x)
        outputs = inexact_outputs(function(*duals))
        return [forward_ad.unpack_dual(o).tangent for o in outputs]


def _zeros(inputs: Sequence[Any]) -> dict[int, Tensor]:
    """Tangents of zero for all variables."""
    return {i: flambeau.zeros_like(x.detach()) for i, x in enumerate(inputs)
            if is_differentiable(x)}


def forward_columns(function: Any, inputs: Sequence[Any], place: int,
                    outputs: Sequence[Tensor]) -> list[Tensor]:
    """The Jacobian of each output by the real input number `place`."""
    x = inputs[place]
    rows: list[list[Tensor]] = [[] for _ in outputs]
    for i in range(x.numel()):
        direction = flambeau.zeros(x.numel(), dtype=x.dtype)
        direction[i] = 1
        found = run_forward(function, inputs,
                            {**_zeros(inputs), place: direction.reshape(x.shape)})
        for row, tangent, o in zip(rows, found, outputs):
            row.append(_dense_tangent(tangent, o))
    return [flambeau.stack(row) if row else flambeau.zeros(0, o.numel(), dtype=o.dtype)
            for row, o in zip(rows, outputs)]


def forward_along(function: Any, inputs: Sequence[Any], place: int, outputs: Sequence[Tensor],
                  u: Tensor) -> list[Tensor]:
    """The tangent of each output in the direction `u` of the real input number `place`."""
    x = inputs[place]
    found = run_forward(function, inputs,
                        {**_zeros(inputs), place: u.reshape(x.shape).to(x.dtype)})
    return [_dense_tangent(t, o) for t, o in zip(found, outputs)]


def _dense_tangent(tangent: Any, output: Tensor) -> Tensor:
    if tangent is None:
        return flambeau.zeros(output.numel(), dtype=output.dtype)
    return tangent.detach().to(output.dtype).reshape(-1).clone()

"""How calls of the common ops are shown: factories, arithmetic, views, indexing, reductions,
products and random numbers."""
from __future__ import annotations

import math
from typing import Any

import flambeau
from flambeau._dispatch.forms import becomes, defines, shows
from flambeau.core import engine
from flambeau.core.op import conjugate, table
from flambeau.core.shapes import size_of
from flambeau.core.tensor import Tensor
from flambeau.ops.indexing.basic import _slice as take_slice
from flambeau.ops.indexing.basic import slice_backward
from flambeau.ops.linalg.matmul import adjoint
from flambeau.ops.loss import cross_entropy
from flambeau.ops.nn.dropout import SATURATION, channels

END = 2**63 - 1

# ---- factories -----------------------------------------------------------------------------------

_lift = defines("lift_fresh(Tensor(a) self) -> Tensor(a)", lambda self: self)


def _from_data(*args: Any, **kwargs: Any) -> Tensor:
    """A tensor of a program's own numbers, which is shown once it is there."""
    result = table["tensor"].direct(*args, **kwargs)
    with flambeau.no_grad():
        return _lift(result)


becomes("tensor", _from_data)

# ---- arithmetic ----------------------------------------------------------------------------------

for _name in ("sigmoid", "tanh"):
    _back = defines(f"{_name}_backward(Tensor grad_output, Tensor output) -> Tensor",
                    lambda grad, output, _rule=table[_name].rules["self"]: (
                        grad * conjugate(_rule(output))))
    shows(_name, f"{_name}(Tensor self) -> Tensor",
          grads=lambda grad, result, _back=_back: _back(grad, result))

defines("_local_scalar_dense(Tensor self) -> Scalar", lambda self: self.item())

# ---- copies and views ----------------------------------------------------------------------------

shows("reshape_alias", "view(Tensor(a) self, SymInt[] size) -> Tensor(a)",
      lambda self, size: (self, tuple(size)))
shows("transpose", "t(Tensor(a) self) -> Tensor(a)",       # formulas of derivatives say `t`
      lambda self: (self,) if self.ndim == 2 and engine.current_pass.get() else None,
      run=lambda self: self.t())
becomes("real_view", lambda self: flambeau.view_as_real(self).select(-1, 0))
becomes("imag_view", lambda self: flambeau.view_as_real(self).select(-1, 1))


def _is_whole(item: Any) -> bool:
    return type(item) is slice and item.start is None and item.stop is None \
        and item.step in (None, 1)


def _spots(index: Any, ndim: int) -> list[tuple[int, Any]]:
    """The items of a basic index that change anything, each with the dimension at which it finds
    its own, the items before it having been applied."""
    used = sum(type(i) in (int, slice) for i in index)
    found, dim = [], 0
    for item in index:
        if item is Ellipsis:
            dim += ndim - used
            continue
        if not _is_whole(item):
            found.append((dim, item))
        dim += type(item) is not int
    return found


def _one_by_one(self: Tensor, index: Any) -> Any:
    """A basic index as calls of `select`, `slice` and `unsqueeze`."""
    spots = _spots(index if type(index) is tuple else (index, ...), self.ndim)
    if not spots or (len(spots) == 1 and type(spots[0][1]) is slice):
        return NotImplemented
    for dim, item in spots:
        if type(item) is int:
            self = flambeau.select(self, dim, item)
        elif item is None:
            self = self.unsqueeze(dim)
        else:
            self = take_slice(self, ((slice(None),) * dim) + (item, ...))
    return self


becomes("basic_select basic_slice basic_unsqueeze select_first", _one_by_one)


def _slice_at(index: Any, ndim: int) -> tuple[Any, ...] | None:
    spots = _spots(index, ndim)
    if not spots and ndim and any(type(item) is slice for item in index):
        spots = [(0, slice(None))]
    if len(spots) != 1 or type(spots[0][1]) is not slice:
        return None
    dim, item = spots[0]
    return (dim, item.start or 0, END if item.stop is None else item.stop,
            1 if item.step is None else item.step)


def _cut(self: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Tensor:
    end = None if end is None or end >= END else end
    return take_slice(self, (slice(None),) * (dim % self.ndim) + (slice(start, end, step), ...))


shows("basic_slice", "slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, "
      "SymInt? end=None, SymInt step=1) -> Tensor(a)",
      lambda self, index: (found := _slice_at(index, self.ndim)) and (self, *found), run=_cut)
shows("basic_alias", "alias(Tensor(a) self) -> Tensor(a)", lambda self: (self,))


def _put_back(grad: Tensor, shape: Any, dim: int, start: int, end: int, step: int) -> Tensor:
    return slice_backward(grad, tuple(shape), (slice(None),) * (dim % len(shape)) + (
        slice(start, None if end >= END else end, step), ...))


shows("slice_backward", "slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, "
      "SymInt start, SymInt end, SymInt step) -> Tensor",
      lambda self, shape, index: (found := _slice_at(index, len(shape))) and (
          self, tuple(shape), *found), run=_put_back)

# ---- samples -------------------------------------------------------------------------------------

_DRAWN = "*, Generator? generator=None) -> Tensor"
for _sample, _schema, _drawn_args in (
        ("_bernoulli_sample", f"bernoulli(Tensor self, {_DRAWN}",
         lambda self, generator: (self, generator)),
        ("_poisson_sample", "poisson(Tensor self, Generator? generator=None) -> Tensor",
         lambda self, generator: (self, generator)),
        ("_binomial_sample", "binomial(Tensor count, Tensor prob, Generator? generator=None) -> "
         "Tensor", lambda count, prob, generator: (count, prob, generator)),
        ("_multinomial_sample", "multinomial(Tensor self, SymInt num_samples, "
         f"bool replacement=False, {_DRAWN}",
         lambda self, generator, n, replacement: (self, n, replacement, generator)),
        ("_normal_of_means_sample", f"normal.Tensor_float(Tensor mean, float std=1, {_DRAWN}",
         lambda mean, generator, std: (mean, std, generator)),
        ("_normal_of_deviations_sample", f"normal.float_Tensor(float mean, Tensor std, {_DRAWN}",
         lambda std, generator, mean: (mean, std, generator)),
        ("_standard_gamma_sample", "_standard_gamma(Tensor self, Generator? generator=None) -> "
         "Tensor", lambda self, generator: (self, generator)),
        ("_sample_dirichlet_sample", "_sample_dirichlet(Tensor self, Generator? generator=None) -> "
         "Tensor", lambda self, generator: (self, generator)),
        ("_normal_of_both_sample", f"normal.Tensor_Tensor(Tensor mean, Tensor std, {_DRAWN}",
         lambda mean, std, generator: (mean, std, generator))):
    shows(_sample, _schema, _drawn_args)

# ---- by index ------------------------------------------------------------------------------------


def _spread(tensors: Any, where: Any) -> list[Any]:
    """One index, or None, for each dimension."""
    found: list[Any] = []
    for index, at in zip(tensors, where):
        found += [None] * (at - len(found)) + [index]
    return found


shows("index", "index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
      lambda tensors, where: (tensors[0], _spread(tensors[1:], where)),
      run=lambda self, indices: self[tuple(slice(None) if i is None else i for i in indices)])
shows("index_put_many", "index_put(Tensor self, Tensor?[] indices, Tensor values, "
      "bool accumulate=False) -> Tensor", lambda tensors, where, accumulate: (
          tensors[0], _spread(tensors[2:], where), tensors[1], accumulate))

# ---- products ------------------------------------------------------------------------------------

def _by_first(grad: Tensor, b: Tensor) -> Tensor:
    """The gradient of the product a b of matrices in a."""
    return grad.mm(adjoint(b))


def _by_second(grad: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """The gradient of a b in b; if b lies transposed in memory, so does the gradient."""
    lies_transposed = b.stride() == (1, b.shape[0]) and 1 not in b.shape
    return grad.t().mm(conjugate(a)).t() if lies_transposed else adjoint(a).mm(grad)


def _mm_grads(grad: Tensor, needs: Any, self: Tensor, mat2: Tensor) -> tuple[Any, Any]:
    second = _by_second(grad, self, mat2) if needs[1] else None
    return _by_first(grad, mat2) if needs[0] else None, second


def _addmm_grads(grad: Tensor, needs: Any, self: Any, mat1: Tensor, mat2: Tensor, beta: Any,
                 alpha: Any) -> tuple[Any, ...]:
    scaled = grad if alpha == 1 else grad * conjugate(alpha)
    return (grad if beta == 1 else grad * conjugate(beta),
            _by_first(scaled, mat2) if needs[1] else None,
            _by_second(scaled, mat1, mat2) if needs[2] else None)


shows("addmm", "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> "
      "Tensor", grads=_addmm_grads)
shows("mm", "mm(Tensor self, Tensor mat2) -> Tensor", grads=_mm_grads)


def _linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Any:
    """A linear layer as PyTorch computes it: rows times the transposed weight."""
    if weight.ndim != 2 or (bias is not None and bias.ndim != 1) or input.ndim < 2:
        return NotImplemented if input.ndim != 1 or weight.ndim != 2 else _linear(
            input.unsqueeze(0), weight, bias).squeeze(0)
    if bias is None:
        return input.matmul(weight.t())
    if input.ndim == 2:
        return flambeau.addmm(bias, input, weight.t())
    rows = input.reshape(-1, input.shape[-1])
    return flambeau.addmm(bias, rows, weight.t()).view(*input.shape[:-1], weight.shape[0])


becomes("linear", _linear)

# ---- random numbers ------------------------------------------------------------------------------

def _shows_normal(of_mean: bool, of_std: bool) -> None:
    """A sample whose mean, or deviation, is a tensor."""
    parameters = (f"{'Tensor' if of_mean else 'float'} mean, "
                  f"{'Tensor' if of_std else 'float'} std{'' if of_std else '=1.'}")
    name = "_".join(["Tensor" if t else "float" for t in (of_mean, of_std)])

    def arguments(mean: Any, std: Any, size: Any, generator: Any, out: Any) -> Any:
        if size is not None or out is not None or (isinstance(mean, Tensor), isinstance(
                std, Tensor)) != (of_mean, of_std):
            return None
        return (mean if of_mean else float(mean), std if of_std else float(std), generator)
    grads = (lambda grad, mean, std: (flambeau.zeros_like(mean), flambeau.zeros_like(std))) \
        if of_mean and of_std else (lambda grad, mean: (flambeau.zeros_like(mean),)) \
        if of_mean else (lambda grad, std: (flambeau.zeros_like(std),))
    shows("normal", f"normal.{name}({parameters}, {_DRAWN}", arguments, grads=grads)


for _of_mean, _of_std in ((True, True), (True, False), (False, True)):
    _shows_normal(_of_mean, _of_std)
shows("normal", "normal.float_float(float mean, float std, SymInt[] size, *, Generator? "
      "generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
      "bool? pin_memory=None) -> Tensor",
      lambda mean, std, size, generator, out, dtype, device: None if size is None or out is not None
      else (float(mean), float(std), list(size_of((size,))), generator, dtype, None,
            flambeau.device(device or "cpu"), False))

def _drops(input: Tensor, p: float, train: bool) -> bool:
    return bool(0 < p < 1 and train and input.numel())


def _noise(input: Tensor, p: float, feature: bool) -> Tensor:
    noise = input.new_empty(channels(input)) if feature else flambeau.empty_like(input)
    return noise.bernoulli_(1 - p)


def _shown_dropout(feature: bool, product: Any) -> Any:
    def dropout(input: Tensor, p: float, train: bool) -> Tensor:
        if not _drops(input, p, train):
            return NotImplemented
        with flambeau.no_grad():
            noise = _noise(input, p, feature).div_(1 - p)
        return product(input, noise)
    return dropout


def _shown_alpha_dropout(feature: bool, product: Any) -> Any:
    def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
        if not _drops(input, p, train):
            return NotImplemented
        scale = 1 / math.sqrt((SATURATION**2 * p + 1) * (1 - p))
        with flambeau.no_grad():
            noise = _noise(input, p, feature)
            offset = noise.add(-1).mul_(SATURATION * scale).add_(SATURATION * scale * p)
            noise.mul_(scale)
        return product(input, noise).add_(offset)
    return alpha_dropout


for _prefix, _feature in (("", False), ("feature_", True)):
    becomes(f"{_prefix}dropout", _shown_dropout(_feature, flambeau.mul))
    becomes(f"{_prefix}dropout_", _shown_dropout(_feature, Tensor.mul_))
    becomes(f"{_prefix}alpha_dropout", _shown_alpha_dropout(_feature, flambeau.mul))
    becomes(f"{_prefix}alpha_dropout_", _shown_alpha_dropout(_feature, Tensor.mul_))

# ---- layers that are one call here, and several in PyTorch ---------------------------------------


def _rms_norm(input: Tensor, weight: Any, dims: int, eps: float) -> Tensor:
    scale = flambeau.rsqrt((input.pow(2).mean(tuple(range(-dims, 0)), True)).add_(eps))
    scaled = input * scale
    return scaled if weight is None else scaled * weight


def _cross_entropy(input: Tensor, target: Tensor, weight: Any, reduction: int, ignore_index: int,
                   smoothing: float) -> Tensor:
    """As PyTorch computes it: log-probabilities, then the loss for classes."""
    return cross_entropy._smoothed(flambeau.log_softmax(input, 1), target, weight, reduction,
                                   ignore_index, smoothing)


becomes("_rms_norm", _rms_norm)
becomes("_cross_entropy", _cross_entropy)

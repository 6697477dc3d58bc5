"""Random samples whose parameters are tensors: Bernoulli, multinomial, Poisson, normal and others.

Gradients are zero, as samples of steps do not move smoothly with their parameters; those of the
gamma distribution do.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from flambeau.core import devices, dtypes
from flambeau.core.dtypes import as_numpy_dtype, default_float
from flambeau.core.modes import interceptors
from flambeau.core.op import class_name
from flambeau.core.promotion import type_name
from flambeau.core.shapes import broadcast_error, extents_of
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import AtenForm, op
from flambeau.dispatch.factory import OPTIONS, finish
from flambeau.kernels.creation import random as kernels
from flambeau.kernels.creation import random_gradients as gradients
from flambeau.kernels.refused import no_kernel, refuse
from flambeau.ops.coercion import values_below
from flambeau.ops.pointwise.arithmetic import mul
from flambeau.ops.random.fills import (
    SAME_BATCHED,
    bernoulli_fill,
    check_probabilities,
    draw_like,
    is_real,
    normal_fill,
    outside,
    stream_of,
    vmap_level,
)
from flambeau.ops.special.functions import _standard_gamma_grad
from flambeau.ops.view.conversion import cast
from flambeau.ops.view.shape import expand_to, movedim
from flambeau.transforms import meta

_GENERATOR = "Generator? generator=None"


def sampled(sampler: Any, *canonical: Any) -> Tensor:
    """Call a sampler, on tensors of one shape, as each level of vmap wants it."""
    level = vmap_level() if interceptors else None
    if level is None:
        return sampler(*canonical)
    pairs = [level.unwrap(t) for t in sampler.op.inputs(canonical)]
    if level.randomness == "same":
        if any(bdim is not None for _, bdim in pairs):
            raise RuntimeError(SAME_BATCHED)
        return outside(level, sampled, sampler, *canonical)
    return outside(level, _sampled_whole, sampler, canonical, level, pairs)


def _sampled_whole(sampler: Any, canonical: Any, level: Any, pairs: Any) -> Tensor:
    whole = [movedim(value, bdim, 0) if bdim is not None
             else expand_to(value, (level.size, *value._array.shape))
             for value, bdim in pairs]
    return level.wrap(sampled(sampler, *sampler.op.with_inputs(canonical, whole)), 0)


def sampler(name: str, kernel: Any, *parameters: str, aten: str = "", node: str = "",
            **rules: Any) -> Any:
    """Declare a sampler: `kernel(stream, *arrays, *numbers)`, of the `parameters`, tensors first;
    it is `shown` as that overload. Gradients that no rule gives are zero."""
    own = parameters or ("Tensor self",)
    tensors = [p.partition(" ")[2] for p in own if p.startswith("Tensor")]
    n = len(tensors)

    def run(*args: Any) -> Any:
        return kernel(stream_of(args[n], name), *args[:n], *args[n + 1:])
    takes = ", ".join([*own[:n], "Generator? generator", *own[n:]])
    return op(f"_{name}_sample({takes}) -> Tensor", kernel=run, function=False, method=False,
              node=node or class_name(name),
              aten=(AtenForm(f"{aten} -> Tensor"),) if aten else (),
              **{f"d_{t}": 0 for t in tensors} | rules)


_bernoulli = sampler(
    "bernoulli", lambda stream, p: kernels.bernoulli_each(stream, np.empty(p.shape, p.dtype), p),
    aten=f"bernoulli(Tensor self, *, {_GENERATOR})")
_poisson = sampler("poisson", kernels.poisson, aten=f"poisson(Tensor self, {_GENERATOR})")
_binomial = sampler("binomial", kernels.binomial, "Tensor count", "Tensor prob",
                    aten=f"binomial(Tensor count, Tensor prob, {_GENERATOR})")
_multinomial = sampler("multinomial", kernels.multinomial, "Tensor self", "int num_samples",
                       "bool replacement", aten="multinomial(Tensor self, SymInt num_samples, "
                       f"bool replacement=False, *, {_GENERATOR})")


def _normal(stream: kernels.Stream, shape: tuple[int, ...], target: np.dtype,
            std: float = 1.0) -> np.ndarray:
    out = np.empty(shape, target)
    normal_fill(target, 0.0, std, None, stream)(out)
    return out


def _multiply_by_std(numbers: np.ndarray, std: np.ndarray) -> np.ndarray:
    return (_compute_type(numbers) * _compute_type(std)).astype(numbers.dtype, copy=False)


def _add_mean(numbers: np.ndarray, mean: np.ndarray) -> np.ndarray:
    return (_compute_type(numbers) + _compute_type(mean)).astype(numbers.dtype, copy=False)


def _compute_type(array: np.ndarray) -> np.ndarray:
    """float16 and bfloat16 as the float32 in which they are computed with."""
    return array.astype(np.float32) if array.dtype.itemsize < 4 else array


_normal_of_means = sampler(
    "normal_of_means", lambda stream, mean, std: _add_mean(
        _normal(stream, mean.shape, mean.dtype, std), mean), "Tensor mean", "float std",
    aten=f"normal.Tensor_float(Tensor mean, float std=1, *, {_GENERATOR})",
    node="NormalBackward1")
_normal_of_deviations = sampler(
    "normal_of_deviations", lambda stream, std, mean: _add_mean(
        _multiply_by_std(_normal(stream, std.shape, std.dtype), std), np.asarray(mean, std.dtype)),
    "Tensor std", "float mean",
    aten=f"normal.float_Tensor(float mean, Tensor std, *, {_GENERATOR})", node="NormalBackward2")
_normal_of_both = sampler(
    "normal_of_both", lambda stream, mean, std: _add_mean(
        _multiply_by_std(_normal(stream, mean.shape, mean.dtype), std), mean), "Tensor mean",
    "Tensor std", aten=f"normal.Tensor_Tensor(Tensor mean, Tensor std, *, {_GENERATOR})",
    node="NormalBackward3")


def _on_meta(input: Tensor, shape: Any = None, dtype: Any = None) -> Tensor | None:
    """The result of a sampler on a tensor without values: one without values, and nothing drawn."""
    if input._device is devices.cpu:
        return None
    array = input._array
    return finish(meta.meta_array(array.shape if shape is None else shape, dtype or array.dtype),
                  input._device)


def _bernoulli_out_type(read: Any, out: Any, found: Any) -> str:
    if out.is_complex and read[0]._array.size:
        raise no_kernel("bernoulli_tensor_cpu_self_", out.numpy)
    return ""


@op(f"bernoulli(Tensor self, *, {_GENERATOR}) -> Tensor", out_any=True,
    out_type=_bernoulli_out_type, overlap="element")
def bernoulli(self: Tensor, generator: Any) -> Tensor:
    """Ones and zeros: ones with the probabilities in `input`, or all with probability `p`.

    >>> import flambeau
    >>> flambeau.bernoulli(flambeau.tensor([0.0, 1.0]))
    tensor([0., 1.])
    """
    array = self._array
    if array.size:
        refuse(array, "cWU8", "bernoulli_tensor_cpu_self_")
    check_probabilities(values_below(self))
    result = _on_meta(self)
    return sampled(_bernoulli, self, generator) if result is None else result


@op(f"bernoulli.p(Tensor self, float p, *, {_GENERATOR}) -> Tensor", overload_of=bernoulli,
    out=False, explicit=True)
def bernoulli_of_number(self: Tensor, p: float, generator: Any) -> Tensor:
    target = self._array.dtype
    return draw_like(self._array.shape, target, bernoulli_fill(target, p, generator), self._device)


@op(f"poisson(Tensor self, {_GENERATOR}) -> Tensor", method=False, out=False)
def poisson(self: Tensor, generator: Any) -> Tensor:
    """Counts with Poisson distributions of the rates in `input`."""
    values = values_below(self)
    if not is_real(values.dtype):
        raise no_kernel("poisson_cpu", values.dtype)
    if not (values >= 0).all():
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    result = _on_meta(self)
    return sampled(_poisson, self, generator) if result is None else result


@op(f"binomial(Tensor count, Tensor prob, {_GENERATOR}) -> Tensor", method=False, out=False)
def binomial(count: Tensor, prob: Tensor, generator: Any) -> Tensor:
    """How many of `count` trials of probability `prob` succeed."""
    for tensor, name in ((count, "count"), (prob, "prob")):
        if not is_real(tensor._array.dtype):
            raise ValueError(f"binomial only supports floating-point dtypes for {name}, got: "
                             f"{type_name(tensor.dtype)}")
    if count._array.dtype != prob._array.dtype:
        raise RuntimeError(f"Found dtype {type_name(prob.dtype)} but expected "
                           f"{type_name(count.dtype)}")
    if count._array.dtype.itemsize < 4:
        raise no_kernel("binomial_cpu", count._array.dtype)
    count, prob = _broadcast_pair(count, prob)
    result = _on_meta(count)
    return sampled(_binomial, count, prob, generator) if result is None else result


def _broadcast_pair(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Two tensors broadcast to one shape."""
    if a._array.shape == b._array.shape:
        return a, b
    try:
        shape = np.broadcast_shapes(a._array.shape, b._array.shape)
    except ValueError:
        raise broadcast_error(a._array.shape, b._array.shape) from None
    return expand_to(a, shape), expand_to(b, shape)


@op(f"multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, {_GENERATOR}) -> "
    "Tensor", out_type="multinomial expects Long tensor out, got: {out}", out_reported_as=False,
    out_resized=False)
def multinomial(self: Tensor, num_samples: int, replacement: bool, generator: Any) -> Tensor:
    """Indices of `num_samples` draws from each row of weights (which need not sum to 1).

    >>> import flambeau
    >>> flambeau.multinomial(flambeau.tensor([0.0, 3.0]), 2, replacement=True)
    tensor([1, 1])
    """
    _check_weights(self, num_samples, replacement)
    shape = (*self._array.shape[:-1], num_samples)
    result = _on_meta(self, shape, np.dtype(np.int64))
    if result is None:
        result = sampled(_multinomial, self, generator, num_samples, bool(replacement))
    return result


def _check_weights(input: Tensor, n: int, replacement: bool) -> None:
    shape, array_type = input._array.shape, input._array.dtype
    if len(shape) not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    refuse(input._array, "8", "aminmax_cpu")
    if not is_real(array_type):
        raise RuntimeError("multinomial only supports floating-point dtypes for input, got: "
                           f"{type_name(input.dtype)}")
    if n <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and n > shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without "
                           "replacement")
    if shape[-1] > 1 << 24:
        raise RuntimeError("number of categories cannot exceed 2^24")
    if input._device is not devices.cpu:
        return
    weights = values_below(input)
    wrong = weights[~((weights >= 0) & np.isfinite(weights))]
    if wrong.size and (not replacement or n == 1):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if wrong.size:
        said = "= infinity or NaN" if wrong[0] > 0 else "< 0"       # of NaN too
        raise RuntimeError(f"invalid multinomial distribution (encountering probability entry "
                           f"{said})")
    if not (weights.astype(np.float64).sum(-1) > 0).all():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")


_OVERLOADS = (
    f"normal.Tensor_float(Tensor mean, float std=1, *, {_GENERATOR}) -> Tensor",
    f"normal.float_Tensor(float mean, Tensor std, *, {_GENERATOR}) -> Tensor",
    f"normal.Tensor_Tensor(Tensor mean, Tensor std, *, {_GENERATOR}) -> Tensor",
    f"normal.float_float(float mean, float std, SymInt[] size, *, {_GENERATOR}, {OPTIONS}) -> "
    "Tensor")


def _with_tensors(*arguments: Any) -> Any:
    """Modes that look below autograd see the sample of which these are the means or deviations."""
    return NotImplemented if arguments[3] is not None else normal.op.body(*arguments)


@op(*_OVERLOADS, method=False, overlap="element", aten_calls=_with_tensors,
    typed_by_out=True,
    out_type=lambda read, out, found: "dtype {found} does not match dtype of out parameter ({out})")
def normal(mean: Any, std: Any, generator: Any, size: Any, dtype: Any, layout: Any, device: Any,
           pin_memory: Any, requires_grad: Any) -> Tensor:
    """Normal numbers: of the means and deviations in two tensors that broadcast, of one tensor and
    one number, or of two numbers and a `size`.

    >>> import flambeau
    >>> flambeau.normal(flambeau.tensor([1.0, 2.0]), 0.0)
    tensor([1., 2.])
    """
    if size is not None:
        target = as_numpy_dtype(dtype) or default_float()
        return draw_like(extents_of(size), target, normal_fill(target, mean, std, generator),
                         device, requires_grad=bool(requires_grad))
    target = as_numpy_dtype(dtype) or (mean if isinstance(mean, Tensor) else std)._array.dtype
    _check_deviation(std)
    if target not in dtypes.FLOATING:
        raise no_kernel("normal_kernel_cpu", target)
    if dtype is not None:                   # of `out`, in which the numbers are drawn
        real = np.zeros(0, target).real.dtype
        mean, std = (cast(x, kind) if isinstance(x, Tensor) else x
                     for x, kind in ((mean, target), (std, real)))
    if not isinstance(std, Tensor):
        sampler, canonical = _normal_of_means, (mean, generator, float(std))
    elif not isinstance(mean, Tensor):
        sampler, canonical = _normal_of_deviations, (std, generator, float(mean))
    else:
        sampler, canonical = _normal_of_both, (*_broadcast_pair(mean, std), generator)
    result = _on_meta(canonical[0], None, target)
    return sampled(sampler, *canonical) if result is None else result


def _check_deviation(std: Any) -> None:
    if isinstance(std, Tensor):
        if std._array.dtype.kind in "cW":
            raise RuntimeError("normal expects standard deviation to be non-complex")
        refuse(std._array, "U8", "min_all")
        if std._device is devices.cpu and not (values_below(std) >= 0).all():
            raise RuntimeError("normal expects all elements of std >= 0.0")
    elif not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")


# ---- gamma and Dirichlet samples -----------------------------------------------------------------


_gamma = sampler("standard_gamma", kernels.standard_gamma,
                 aten=f"_standard_gamma(Tensor self, {_GENERATOR})",
                 d_self=lambda grad, self, result: mul(
                     grad, _standard_gamma_grad(self, result)))


def _dirichlet_vjp(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    """Each concentration moves its own share, at the cost of all shares in proportion."""
    total = expand_to(self.sum(-1, True), self._array.shape)
    outcome = (result * grad).sum(-1, True)
    return _dirichlet_grad(result, self, total) * (grad - outcome)


_dirichlet = sampler("sample_dirichlet", kernels.dirichlet, d_self=_dirichlet_vjp,
                     aten=f"_sample_dirichlet(Tensor self, {_GENERATOR})")


@op(f"_standard_gamma(Tensor self, {_GENERATOR}) -> Tensor", method=False, out=False)
def _standard_gamma(self: Tensor, generator: Any) -> Tensor:
    """Gamma samples of the shapes in `input` and scale 1, which move with the shapes.

    Marsaglia and Tsang, A simple method for generating gamma variables, 2000.
    """
    if not is_real(self._array.dtype) or self._array.dtype.itemsize < 4:
        raise no_kernel("gamma_cpu", self._array.dtype)
    result = _on_meta(self)
    return sampled(_gamma, self, generator) if result is None else result


@op(f"_sample_dirichlet(Tensor self, {_GENERATOR}) -> Tensor", method=False, out=False)
def _sample_dirichlet(self: Tensor, generator: Any) -> Tensor:
    """Dirichlet samples of the concentrations along the last dimension of `input`."""
    if not is_real(self._array.dtype) or self._array.dtype.itemsize < 4:
        raise no_kernel("dirichlet", self._array.dtype)
    result = _on_meta(self)
    return sampled(_dirichlet, self, generator) if result is None else result


_dirichlet_grad = op(
    "_dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor", method=False, out=False,
    kernel=gradients.dirichlet_grad, core="(),(),()->()",
    doc="How beta samples `x` of parameters (alpha, total - alpha) move with alpha, over 1 - x.")



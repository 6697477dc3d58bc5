"""Which overload of PyTorch's dispatcher a public call is, with which arguments.

>>> call = find("sum", (flambeau.ones(2, 3), 1), {})
>>> call.overload, call.args[1:], call.kwargs
('dim_IntList', ([1],), {})
"""
from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import flambeau
from flambeau import Tensor
from flambeau._dispatch.schemas import recorded
from flambeau._library.operators import overload_named
from flambeau._ops import aten
from flambeau.core.op import Op, table
from flambeau.dispatch.python_functions import PythonFunction
from flambeau.schema.function_schema import MISSING, Argument, parse_schema

# What is no call of a program's: forms with `out=`, gradients, parts of other libraries; and names
# that no function or method has.
_SKIPPED = re.compile(
    r"_out$|^out$|_out_|names|dimname|hacked_twin|prim_|list_"
    r"|_backward|mkldnn|miopen|cudnn|fbgemm|quantize|_copy$|^q_|^(?!__)_|batch_norm_|_sparse"
    r"|^(cauchy|convolution_overrideable|embedding_renorm|exponential|geometric|get_gradients"
    r"|glu_jvp|lift|lift_fresh|log_normal|log_sigmoid_forward|matrix_H|multilabel_margin_loss_forward"
    r"|nested_to_padded_tensor|nonzero_numpy|normal_functional|numpy_T|rrelu_with_noise_functional"
    r"|set|slow_conv3d_forward|sparse_(resize|resize_and_clear|sampled_addmm)|uniform|unique_dim|unique_dim_consecutive|zero)$")
_WRAPPED = re.compile(r"(add|sub|mul|div|floor_divide)_?\.Scalar")   # of numbers tensors are made
_INNER = frozenset("""_assert_tensor_metadata _conj _log_softmax _native_batch_norm_legit
    _native_batch_norm_legit_functional _native_batch_norm_legit_no_training _pack_padded_sequence
    _softmax _to_copy _unsafe_view _weight_norm alias constant_pad_nd convolution copy fill
    lift_fresh_copy max_pool2d_with_indices max_pool3d_with_indices native_dropout
    native_group_norm native_layer_norm nll_loss2d_forward nll_loss_forward rsub slice sym_size
    upsample_bilinear2d upsample_nearest2d""".split())        # that programs' functions lead to
_MARK = re.compile(r"\([a-z!| ]+(-> \*)?\)")               # what is a view, or is written


class Call(NamedTuple):
    """A call by overload: trailing arguments that are the defaults are left out."""
    name: str
    overload: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@functools.cache
def schemas() -> dict[str, dict[str, list[Argument]]]:
    """The arguments of each overload of each name."""
    found: dict[str, dict[str, list[Argument]]] = {}
    for base, lines in recorded().items():
        for overload, line in lines.items():
            call, _, result = line.schema.rpartition(" -> ")
            inner = base in _INNER
            if "out" in line.facts or "Dict" in call or _WRAPPED.match(call) \
                    or "Tensor" not in (call if inner else result) \
                    or (not inner and (_SKIPPED.search(base) or _SKIPPED.search(overload))):
                continue
            text = _MARK.sub("", call).replace("SymInt", "int")
            arguments = parse_schema(f"{text} -> Tensor")[1]
            found.setdefault(base, {})[overload] = [
                replace(a, default=_default(a)) for a in arguments]
    for overloads in found.values():            # which of two that fit is meant
        for overload in ("correction", "dim", "vec"):
            if overload in overloads:
                first = overloads.pop(overload)
                overloads.update({overload: first, **{k: overloads.pop(k) for k in [*overloads]}})
    return found


def declared(name: str) -> Op | None:
    """The op of that name that is declared by its schema, or the one that writes to its input."""
    op = table.get(name)
    if op is None and name[-1:] == "_":
        op = table.get(name[:-1])
        if op is not None and op.declaration is not None:
            return op if op.declaration.inplace else None
    return op if op is not None and op.declaration is not None else None


def _default(argument: Argument) -> Any:
    value = argument.default
    if value is MISSING or value == "None":
        return None if value == "None" else value
    if argument.declared.startswith("float") and type(value) is int:
        value = float(value)
    return _converted(argument.declared, value) if "[" in argument.declared else value


# ---- values and types ---------------------------------------------------------------------------

_NUMBERS = (int, float, complex)
_KINDS: dict[str, Callable[[Any], bool]] = {
    "Tensor": lambda v: isinstance(v, Tensor),
    "int": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "float": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    "Scalar": lambda v: isinstance(v, _NUMBERS),
    "bool": lambda v: isinstance(v, bool),
    "str": lambda v: isinstance(v, str),
    "ScalarType": lambda v: isinstance(v, flambeau.dtype),
    "Layout": lambda v: isinstance(v, flambeau.layout),
    "Device": lambda v: isinstance(v, (flambeau.device, str)),
    "MemoryFormat": lambda v: isinstance(v, flambeau.memory_format),
    "Generator": lambda v: isinstance(v, flambeau.Generator),
}


def _fits(kind: str, value: Any, loose: bool) -> bool:
    """Is `value` one of this type? Numbers count as tensors if `loose`."""
    if kind.endswith("?"):
        return value is None or _fits(kind[:-1], value, loose)
    match = re.fullmatch(r"(.+)\[(\d*)\]", kind)
    if match:
        if match[2] and _fits(match[1], value, False):
            return True
        return isinstance(value, (list, tuple)) and all(_fits(match[1], v, loose) for v in value)
    if kind == "Tensor" and loose and isinstance(value, _NUMBERS):
        return True
    return kind in _KINDS and _KINDS[kind](value)


def _converted(kind: str, value: Any) -> Any:
    """A value as the dispatcher holds it: lists of the right length, floats, devices."""
    if value is None:
        return None
    kind = kind.removesuffix("?")
    match = re.fullmatch(r"(.+)\[(\d*)\]", kind)
    if match:
        if not isinstance(value, (list, tuple)):
            return [_converted(match[1], value)] * int(match[2] or 1)
        return [_converted(match[1], v) for v in value]
    if kind == "float":
        return float(value)
    return flambeau.device(value) if kind == "Device" else value


_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def _bind(arguments: list[Argument], args: tuple[Any, ...], kwargs: dict[str, Any], loose: bool
          ) -> dict[str, Any] | None:
    """The values of all arguments, None if the call does not fit."""
    positional = [a for a in arguments if not a.keyword_only]
    for i, argument in enumerate(positional):
        # x.view(2, 3): the sizes may come one by one
        if re.fullmatch(r"int\[\d?\]", argument.declared) and i == len(positional) - 1 \
                and (len(args) > i + 1 or (args[i:] and argument.declared == "int[]")) \
                and all(map(_KINDS["int"], args[i:])):
            args = (*args[:i], list(args[i:]))
    if len(args) > len(positional):
        return None
    given = dict(zip((a.name for a in positional), args)) | kwargs
    if len(given) != len(args) + len(kwargs):
        return None
    bound: dict[str, Any] = {}
    for argument in arguments:
        value = given.pop(argument.name, MISSING)
        if value is MISSING:
            if argument.default is MISSING:
                return None
            bound[argument.name] = argument.default
            continue
        if argument.name == "reduction" and value in _REDUCTIONS:
            value = _REDUCTIONS[value]
        if value is not argument.default:
            if not _fits(argument.declared, value, loose):
                return None
            value = _converted(argument.declared, value)
        bound[argument.name] = value
    return None if given else bound


def _same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and not isinstance(a, Tensor) and a == b


def find(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
    """The overload of `name` that takes these arguments; None if there is none."""
    for loose in (False, True):
        for overload, arguments in schemas().get(name, {}).items():
            bound = _bind(arguments, args, kwargs, loose)
            if bound is None:
                continue
            values = [bound[a.name] for a in arguments if not a.keyword_only]
            defaults = [a.default for a in arguments if not a.keyword_only]
            while values and _same(values[-1], defaults[len(values) - 1]):
                values.pop()
            rest = {a.name: bound[a.name] for a in arguments
                    if a.keyword_only and not _same(bound[a.name], a.default)}
            return Call(name, overload, tuple(values), rest)
    return None


# ---- public calls whose arguments are others ----------------------------------------------------

_PUBLIC: dict[str, Callable[..., Any]] = {}


def _public(function: Callable[..., Any]) -> Callable[..., Any]:
    _PUBLIC[function.__name__] = function
    return function


@_public
def embedding(input: Any, weight: Any, padding_idx: Any = None, max_norm: Any = None,
              norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False
              ) -> Any:
    if max_norm is not None:
        return None
    if padding_idx is None:
        padding_idx = -1
    elif padding_idx < 0:
        padding_idx += weight.shape[0]
    return "embedding", (weight, input, padding_idx, scale_grad_by_freq, sparse), {}


@_public
def batch_norm(input: Any, running_mean: Any, running_var: Any, weight: Any = None,
               bias: Any = None, training: bool = False, momentum: float = 0.1,
               eps: float = 1e-5) -> Any:
    return "batch_norm", (input, weight, bias, running_mean, running_var, training, momentum, eps,
                          False), {}


@_public
def instance_norm(input: Any, running_mean: Any = None, running_var: Any = None,
                  weight: Any = None, bias: Any = None, use_input_stats: bool = True,
                  momentum: float = 0.1, eps: float = 1e-5) -> Any:
    return "instance_norm", (input, weight, bias, running_mean, running_var, use_input_stats,
                             momentum, eps, False), {}


@_public
def layer_norm(input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None,
               eps: float = 1e-5) -> Any:
    return "layer_norm", (input, normalized_shape, weight, bias, eps, False), {}


@_public
def group_norm(input: Any, num_groups: int, weight: Any = None, bias: Any = None,
               eps: float = 1e-5) -> Any:
    return "group_norm", (input, num_groups, weight, bias, eps, False), {}


def _max_pool(n: int) -> None:
    def call(input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
             ceil_mode: bool = False, return_indices: bool = False) -> Any:
        name = f"max_pool{n}d" + "_with_indices" * return_indices
        return name, (input, kernel_size, [] if stride is None else stride, padding, dilation,
                      ceil_mode), {}
    _PUBLIC[f"max_pool{n}d"] = call


for _n in (1, 2, 3):
    _max_pool(_n)


def _average_pool(n: int) -> None:
    def call(input: Any, kernel_size: Any, stride: Any = None, *args: Any, **kwargs: Any) -> Any:
        return f"avg_pool{n}d", (input, kernel_size, [] if stride is None else stride, *args), \
            kwargs
    _PUBLIC[f"avg_pool{n}d"] = call


def _adaptive_pool(n: int) -> None:
    def call(input: Any, output_size: Any) -> Any:
        if isinstance(output_size, (list, tuple)):
            output_size = [input.shape[i - n] if size is None else size
                           for i, size in enumerate(output_size)]
        return f"adaptive_avg_pool{n}d", (input, output_size), {}
    _PUBLIC[f"adaptive_avg_pool{n}d"] = call


def _adaptive_max_pool(n: int) -> None:
    def call(input: Any, output_size: Any, return_indices: bool = False) -> Any:
        args, kwargs = _PUBLIC[f"adaptive_avg_pool{n}d"](input, output_size)[1:]
        return f"adaptive_max_pool{n}d", args, kwargs
    _PUBLIC[f"adaptive_max_pool{n}d"] = call


WITH_INDICES = frozenset(f"adaptive_max_pool{n}d" for n in (1, 2, 3))   # which users may not want
for _n in (1, 2, 3):
    _adaptive_max_pool(_n)
    _average_pool(_n)
    _adaptive_pool(_n)


@_public
def norm(input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None
         ) -> Any:
    if p == "nuc":
        return None
    return "linalg_vector_norm", (input, 2 if p in ("fro", None) else p, dim, keepdim), \
        {} if dtype is None else {"dtype": dtype}


@_public
def cast(input: Any, dtype: Any) -> Any:
    return "to", (input, dtype), {}


@_public
def split(tensor: Any, split_size_or_sections: Any, dim: int = 0) -> Any:
    if isinstance(split_size_or_sections, int):
        return "split", (tensor, split_size_or_sections, dim), {}
    return "split_with_sizes", (tensor, list(split_size_or_sections), dim), {}


@_public
def einsum(equation: str, *operands: Any) -> Any:
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    return ("einsum", (equation, list(operands)), {}) if isinstance(equation, str) else None


@_public
def meshgrid(*tensors: Any, indexing: str | None = None) -> Any:
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    return "meshgrid", (list(tensors),), {} if indexing is None else {"indexing": indexing}


@_public
def interpolate(input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
                align_corners: bool | None = None, recompute_scale_factor: Any = None,
                antialias: bool = False) -> Any:
    name = {"nearest": "nearest", "bilinear": "bilinear", "linear": "linear",
            "trilinear": "trilinear", "bicubic": "bicubic"}.get(mode)
    n = input.ndim - 2
    if name is None or antialias or recompute_scale_factor:
        return None
    if size is not None:
        size = [size] * n if isinstance(size, int) else list(size)
    if scale_factor is not None:
        scale_factor = list(scale_factor) if isinstance(scale_factor, (list, tuple)) \
            else [float(scale_factor)] * n
    corners = () if name == "nearest" else (bool(align_corners),)
    return f"upsample_{name}{n}d", (input, size, *corners, scale_factor), {}


@_public
def unfold(input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
           ) -> Any:
    return "im2col", (input, kernel_size, dilation, padding, stride), {}


@_public
def grid_sample(input: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros",
                align_corners: bool | None = None) -> Any:
    modes, edges = ["bilinear", "nearest", "bicubic"], ["zeros", "border", "reflection"]
    return "grid_sampler", (input, grid, modes.index(mode), edges.index(padding_mode),
                            bool(align_corners)), {}


_SAME_ARGUMENTS = {"reshape_alias": "view",
                   "and": "__and__"}


def of_public(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
    """The overload that a call of a public function or method is; None if it is not one."""
    name = function.__name__
    space = re.fullmatch(r"flambeau\.(linalg|fft|special)", function.__module__ or "")
    if space:
        return find(f"{space[1]}_{name.removeprefix(f'{space[1]}_')}", args, kwargs)
    if name not in _PUBLIC and isinstance(getattr(function, "twin", function), PythonFunction):
        return None                                     # its parts are
    functional = function.__module__ == "flambeau.nn.functional"
    if name in _PUBLIC and (functional or name not in ("unfold", "dropout", "instance_norm",
                                                       "batch_norm", "layer_norm", "group_norm")):
        try:
            found = _PUBLIC[name](*args, **kwargs)
        except (TypeError, ValueError):
            return None
        return found and find(*found)
    return find(_SAME_ARGUMENTS.get(name, name), args, kwargs)


# ---- running a call by overload -----------------------------------------------------------------

def _swapped(name: str) -> Callable[..., Any]:
    """The public function with the dispatcher's order of arguments."""
    functional = flambeau.nn.functional
    runs: dict[str, Callable[..., Any]] = {
        "embedding": lambda weight, indices, padding_idx=-1, scale_grad_by_freq=False,
        sparse=False: functional.embedding(
            indices, weight, None if padding_idx == -1 else padding_idx,
            scale_grad_by_freq=scale_grad_by_freq, sparse=sparse),
        "batch_norm": lambda input, weight, bias, mean, var, training, momentum, eps, cudnn:
        functional.batch_norm(input, mean, var, weight, bias, training, momentum, eps),
        "instance_norm": lambda input, weight, bias, mean, var, use, momentum, eps, cudnn:
        functional.instance_norm(input, mean, var, weight, bias, use, momentum, eps),
        "layer_norm": lambda input, shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True:
        functional.layer_norm(input, shape, weight, bias, eps),
        "group_norm": lambda input, groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=True:
        functional.group_norm(input, groups, weight, bias, eps),
        "dropout": functional.dropout, "alpha_dropout": functional.alpha_dropout,
        "dropout_": lambda input, p, train: functional.dropout(input, p, train, True),
        "feature_dropout": functional.dropout2d,
        "feature_alpha_dropout": functional.feature_alpha_dropout,
        "unfold": Tensor.unfold, "im2col": functional.unfold,
        "numpy_T": lambda x: x.T, "mT": lambda x: x.mT, "mH": lambda x: x.mH,
        "matrix_H": lambda x: x.H, "real": flambeau.real, "imag": flambeau.imag,
        "lift_fresh_copy": lambda x: x.clone(), "alias": lambda x: x.view_as(x),
        "lift_fresh": lambda x: x, "_to_copy": lambda x, non_blocking=False, **kw:
        x.to(**kw, copy=True),
        "_unsafe_view": lambda x, size: x.reshape(size),
        "grid_sampler": lambda x, grid, mode, padding, corners: functional.grid_sample(
            x, grid, ["bilinear", "nearest", "bicubic"][mode],
            ["zeros", "border", "reflection"][padding], corners),
        "split_with_sizes": lambda x, split_sizes, dim=0: x.split(split_sizes, dim),
        "max_pool1d_with_indices": _with_indices(functional.max_pool1d),
        "max_pool2d_with_indices": _with_indices(functional.max_pool2d),
        "max_pool3d_with_indices": _with_indices(functional.max_pool3d),
        "copy": lambda x, source: source.to(x.dtype).expand(x.shape).clone(),
        "fill": flambeau.full_like, "index": lambda x, indices: x[_where(indices)],
        "select": lambda x, dim, index: x.select(dim, index),
        "slice": _sliced, "einsum": lambda equation, tensors: flambeau.einsum(equation, *tensors),
        "meshgrid": lambda tensors, indexing="ij": list(flambeau.meshgrid(
            *tensors, indexing=indexing)),
        "convolution": _convolution, "native_dropout": _native_dropout,
        "native_layer_norm": _native_layer_norm, "constant_pad_nd":
        lambda x, pad, value=0: functional.pad(x, pad, value=value),
        "_native_batch_norm_legit_no_training": lambda x, weight, bias, mean, var, momentum, eps:
        (functional.batch_norm(x, mean, var, weight, bias, False, momentum, eps),
         x.new_empty(0), x.new_empty(0)),
        "_native_batch_norm_legit": lambda x, weight, bias, training, momentum, eps:
        _native_batch_norm(x, weight, bias, None, None, True, momentum, eps)[:3],
        "_native_batch_norm_legit_functional": _native_batch_norm,
        "_assert_tensor_metadata": _check_metadata,
        "sym_size": lambda x, dim: x.shape[dim], "linalg_vector_norm": _vector_norm,
    }
    for n, word in ((1, "linear"), (2, "bilinear"), (3, "trilinear"), (2, "bicubic")):
        runs[f"upsample_{word}{n}d"] = lambda x, size, corners, scales, mode=word: \
            functional.interpolate(x, size, scales and tuple(scales), mode, corners)
    for n in (1, 2, 3):
        runs[f"adaptive_max_pool{n}d"] = functools.partial(
            getattr(functional, f"adaptive_max_pool{n}d"), return_indices=True)
        runs[f"upsample_nearest{n}d"] = lambda x, size, scales: functional.interpolate(
            x, size, scales and tuple(scales))
        runs[f"max_pool{n}d"] = _optional_stride(getattr(functional, f"max_pool{n}d"))
        runs[f"avg_pool{n}d"] = _optional_stride(getattr(functional, f"avg_pool{n}d"))
    return runs.get(name)


def _reduction(number: int) -> str:
    return ("none", "mean", "sum")[number]


def _where(indices: list[Any]) -> tuple[Any, ...]:
    return tuple(slice(None) if i is None else i for i in indices)


def _sliced(x: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Tensor:
    return x[(*[slice(None)] * (dim % x.ndim), slice(start, end, step))]


def _check_metadata(a: Tensor, size: Any = None, stride: Any = None, dtype: Any = None, *,
                    device: Any = None, layout: Any = None) -> None:
    if dtype is not None and a.dtype is not dtype:
        raise RuntimeError(f"Tensor dtype mismatch! Expected: {dtype}, Got: {a.dtype}")


def _convolution(x: Tensor, weight: Tensor, bias: Any, stride: Any, padding: Any, dilation: Any,
                 transposed: bool, output_padding: Any, groups: int) -> Tensor:
    n = x.ndim - 2
    sizes = [tuple(v) * n if len(v) < n else tuple(v) for v in (stride, padding, dilation)]
    if not transposed:
        return getattr(flambeau, f"conv{n}d")(x, weight, bias, *sizes, groups)
    return getattr(flambeau, f"conv_transpose{n}d")(
        x, weight, bias, *sizes[:2], tuple(output_padding), groups, sizes[2])


def _native_dropout(x: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    if not train or p == 0:
        return x.clone(), flambeau.ones_like(x, dtype=flambeau.bool)
    kept = flambeau.nn.functional.dropout(flambeau.ones_like(x), p)
    return x * kept, kept != 0


def _native_layer_norm(x: Tensor, shape: Any, weight: Any, bias: Any, eps: float
                       ) -> tuple[Tensor, Tensor, Tensor]:
    dims = tuple(range(x.ndim - len(shape), x.ndim))
    mean = x.mean(dims, keepdim=True)
    rstd = (x.var(dims, correction=0, keepdim=True) + eps).rsqrt()
    return flambeau.nn.functional.layer_norm(x, shape, weight, bias, eps), mean, rstd


def _native_batch_norm(x: Tensor, weight: Any, bias: Any, mean: Any, var: Any, training: bool,
                       momentum: float, eps: float) -> tuple[Tensor, ...]:
    new = [None if t is None else t.clone() for t in (mean, var)]
    result = flambeau.nn.functional.batch_norm(x, new[0], new[1], weight, bias, True, momentum, eps)
    dims = [0, *range(2, x.ndim)]
    return (result, x.mean(dims), (x.var(dims, correction=0) + eps).rsqrt(), *new)


def _vector_norm(x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *,
                 dtype: Any = None) -> Tensor:
    return flambeau.linalg.vector_norm(x, ord, dim, keepdim, dtype=dtype)


def _optional_stride(pool: Callable[..., Any]) -> Callable[..., Any]:
    def call(input: Any, kernel_size: Any, stride: Any = (), *args: Any) -> Any:
        return pool(input, kernel_size, stride or None, *args)
    return call


def _with_indices(pool: Callable[..., Any]) -> Callable[..., Any]:
    def call(input: Any, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1,
             ceil_mode: bool = False) -> Any:
        return pool(input, kernel_size, stride or None, padding, dilation, ceil_mode=ceil_mode,
                    return_indices=True)
    return call


@functools.cache
def runner(name: str) -> Callable[..., Any] | None:
    """What runs calls of `name` with the dispatcher's arguments; None if it is not known."""
    special = _swapped(name)
    if special is not None:
        return special
    space, _, rest = name.partition("_")
    if space in ("linalg", "fft", "special") and hasattr(getattr(flambeau, space), rest):
        return getattr(getattr(flambeau, space), rest)
    inplace = getattr(Tensor, f"{name}_", None)
    op = declared(name)
    if op is not None:
        return op.published if op.name == name else op.inplace_op.published
    if name not in schemas():
        return inplace and (lambda x, *args, **kwargs: inplace(x.clone(), *args, **kwargs))
    takes_word = any(a.name == "reduction" and a.declared == "int"
                     for arguments in schemas()[name].values() for a in arguments)
    holders = (flambeau, flambeau.nn.functional, Tensor)
    for holder in holders[1:] if takes_word or name.startswith("adaptive") else holders:
        found = getattr(holder, name, None)
        if callable(found) and not inspect.isclass(found) and not inspect.ismodule(found):
            return _worded(found, name) if takes_word else found
    return None


def _worded(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A loss whose reduction comes as a number."""
    arguments = next(iter(schemas()[name].values()))

    def call(*args: Any, **kwargs: Any) -> Any:
        given = dict(zip((a.name for a in arguments), args)) | kwargs
        inputs = [given.pop(a.name) for a in arguments[:2]]
        if "reduction" in given:
            given["reduction"] = _reduction(given["reduction"])
        return function(*inputs, **given)
    return call


def target(name: str, overload: str) -> Any:
    """The overload as an object that can be called: `torch.ops.aten.linear.default`; an op of the
    program's is named with its namespace."""
    if "::" in name:
        return overload_named(name if overload == "default" else f"{name}.{overload}")
    try:
        packet = getattr(aten, name)
    except AttributeError:
        run = runner(name) or _missing(name)
        packet = aten.packet(name, Op(name, "composite", composite=True, function=run, call=run))
    if overload not in packet._overloads:
        packet.declare(overload, run=runner(name))
    elif packet._overloads[overload]._run is None:
        packet._overloads[overload]._run = runner(name)
    return packet._overloads[overload]


def _missing(name: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"aten::{name}")
    return call


def returns_list(name: str) -> bool:
    """Does an overload give a list, not a tuple of fixed length?"""
    return name.split(".")[0] in ("split", "split_with_sizes", "chunk", "unbind", "meshgrid",
                                  "broadcast_tensors", "tensor_split", "hsplit", "vsplit", "dsplit",
                                  "unsafe_split", "unsafe_chunk", "align_tensors", "where",
                                  "unsafe_split_with_sizes", "nonzero_numpy")

"""What public calls do with nested tensors."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._ops import OpOverload
from flambeau.core.op import table
from flambeau.dispatch.backend_errors import (
    check_fit,
    has_no_kernel_of,
    without_kernel,
    without_rule,
)
from flambeau.nested import attention
from flambeau.nested.tensors import NestedInt, NestedTensor, join, make

# Elementwise, but not declared as such; and what makes other elements of the same shape.
_ELEMENTWISE = frozenset("""to type float double half bfloat16 int long short byte char bool clone
    detach contiguous cpu relu relu6 gelu silu leaky_relu elu selu celu mish hardtanh softplus
    hardswish hardsigmoid dropout clamp clip where masked_fill zeros_like ones_like empty_like
    rand_like randn_like full_like nan_to_num isfinite isinf isnan copy fill zero square positive
    logical_not sigmoid tanh subtract multiply divide true_divide rsub rdiv rpow alias""".split())
# Run part by part, with the dimensions that are named counted without that of the parts.
_BY_PART = frozenset("""linear layer_norm rms_norm matmul mm bmm softmax log_softmax transpose
    unsqueeze squeeze flatten unflatten chunk split narrow select sum mean amax amin prod any all
    cumsum cumprod normalize scaled_dot_product_attention embedding""".split())
_OF_PARAMETERS = frozenset("linear layer_norm rms_norm embedding".split())   # shared by all parts
_REDUCTIONS = frozenset("sum mean amax amin prod any all max min argmax argmin".split())
_FACTS = frozenset("""is_floating_point is_complex is_signed element_size get_device
    storage_offset is_inference is_conj is_neg is_distributed""".split())


# Rules of programs, by the name of the op; `_internal.ops.register_func` fills it.
registered: dict[str, Any] = {}


def _nested_in(args: Any) -> list[NestedTensor]:
    found: list[NestedTensor] = []
    for arg in args:
        if isinstance(arg, NestedTensor):
            found.append(arg)
        elif isinstance(arg, list | tuple):
            found += _nested_in(arg)
    return found


def _each(args: Any, change: Any) -> Any:
    if isinstance(args, Tensor):
        return change(args)
    if isinstance(args, list | tuple) and not isinstance(args, flambeau.Size):
        return type(args)([_each(a, change) for a in args])
    return {k: _each(v, change) for k, v in args.items()} if type(args) is dict else args


def _with_plain_sizes(args: Any) -> Any:
    """The arguments with ints for lengths that vary, which signatures do not know."""
    if isinstance(args, list | tuple):
        return tuple([_with_plain_sizes(a) for a in args])
    if type(args) is dict:
        return {k: _with_plain_sizes(v) for k, v in args.items()}
    return -1 if isinstance(args, NestedInt) else args


def _torch_function(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    return dispatch(func, args, kwargs or {})


NestedTensor.__torch_function__ = classmethod(_torch_function)      # type: ignore[assignment]


def dispatch(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """A public call with a nested argument."""
    fit = check_fit(func, _with_plain_sizes(args), _with_plain_sizes(kwargs))
    op = func.overloadpacket._op if isinstance(func, OpOverload) else getattr(func, "op", None)
    title = op.name if op is not None else getattr(func, "__name__", "")
    name = title.strip("_")
    if registered and (rule := registered.get(name)) is not None:
        return rule(func, args, kwargs)
    first = _nested_in((*args, *kwargs.values()))[0]
    if first._ragged is None and fit is not None and has_no_kernel_of(fit, "NestedTensorCPU"):
        return without_rule(func, args, kwargs, "NestedTensorCPU", "", fit)
    if name in _FACTS:
        return func(*_each(args, _plain), **kwargs)
    if name in _REDUCTIONS and len(args) == 1 and "dim" not in kwargs:
        if first._ragged is None:
            raise _unsupported(name)
        return func(first._elements, **kwargs)
    if name in _REDUCTIONS and first._ragged is not None:
        return _reduced(func, name, first, args, kwargs)
    if name == "is_same_size":
        return _are_same_size(*args)
    if name in ("cat", "stack"):
        return _cat(func, name, args[0], args[1] if len(args) > 1 else kwargs.get("dim", 0))
    if name == "select" and args[1] in (0, -first.dim()):
        return first.unbind()[args[2]]
    if name in ("reshape", "view"):
        return _reshaped(first, args[1:])
    if name == "contiguous" and first._lengths is not None:         # there are gaps between parts
        return join(first.unbind(), first.layout)
    if name in _ELEMENTWISE or (name in table and table[name].kind == "pointwise") or (
            op is not None and op.inplace and op.functional.kind == "pointwise"):
        return _elementwise(func, title, first, args, kwargs)
    if name == "permute":
        dims = args[1] if len(args) == 2 else args[1:]
        if [d % first.dim() for d in dims][:1] != [0]:
            raise ValueError("Permute is not supported on the batch dimension for jagged NT")
        return _by_part(func, "", first, (first, [d % first.dim() - 1 for d in dims[1:]]), {})
    if name == "expand" and first._ragged is not None:
        return _by_part(func, "", first, (first, _expanded(first, args[1:])), kwargs)
    if name == "bmm":
        func, name = flambeau.matmul, "matmul"
    if name == "flatten" and first._ragged is not None:
        args, kwargs = (first, *_flattened(first, *args[1:], **kwargs)), {}
    if name in _BY_PART:
        return _by_part(func, name, first, args, kwargs)
    if name in attention.RULES:
        return attention.RULES[name](func, *args, **kwargs)
    return without_rule(func, args, kwargs, "NestedTensorCPU", "", fit)


def _flattened(first: NestedTensor, start_dim: int = 0, end_dim: int = -1) -> tuple[int, int]:
    """The first and the last of the dimensions that become one."""
    start, end = (_dimension(d, first.dim()) for d in (start_dim, end_dim))
    ragged: Any = first._ragged
    if start != end:
        if start == 0:
            raise RuntimeError("flatten(): not supported for NestedTensor on dim=0")
        if start <= ragged <= end:
            raise RuntimeError("flatten(): not supported for NestedTensor on ragged dim")
    return start, end


def _expanded(first: NestedTensor, given: Any) -> list[Any]:
    """The sizes to which each part expands."""
    sizes = list(given[0] if len(given) == 1 and not isinstance(given[0], int) else given)
    ragged: Any = first._ragged
    if len(sizes) != first.dim() or sizes[0] not in (-1, first.size(0)) or not (
            sizes[ragged] is first._length or sizes[ragged] in (-1, first._length)):
        raise RuntimeError(f"expand(): cannot expand shape {tuple(first.shape)} -> {sizes}")
    return [-1 if d == ragged else size for d, size in enumerate(sizes)][1:]


def _cat(func: Any, name: str, tensors: Any, dim: int) -> NestedTensor:
    """Tensors with the same parts, one beside the other in a dimension that does not vary; those of
    layout `strided` one after the other."""
    first = tensors[0]
    if first._ragged is None and name == "cat" and not dim:
        return join([p for tensor in tensors for p in tensor.unbind()], first.layout)
    if not all(isinstance(t, NestedTensor) and t._ragged == first._ragged
               and t._length == first._length for t in tensors) or first._ragged is None:
        raise _unsupported(name)
    dim %= first.dim() + (name == "stack")
    if not dim:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0")
    if dim == first._ragged:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on ragged dim")
    values = func([t._elements for t in tensors], dim - 1)
    shapes = [tuple(func([part.new_empty(part.shape, device="meta") for part in parts],
                         dim - 1).shape) for parts in zip(*[t.unbind() for t in tensors])]
    return make(values, shapes, first._ragged, first._starts, first._lengths, first._length)


def _reduced(func: Any, name: str, first: NestedTensor, args: Any, kwargs: dict[str, Any]) -> Any:
    """A reduction over some dimensions, all elements of a part at once or all of all parts."""
    dim = args[1] if len(args) > 1 else kwargs["dim"]
    if isinstance(dim, Tensor):                     # of two tensors: `max(x, y)`
        return _elementwise(func, name, first, args, kwargs)
    rank = first.dim()
    given = range(rank) if dim is None else [dim] if isinstance(dim, int) else dim
    dims = {_dimension(d, rank) for d in given}
    if 0 not in dims:
        if first._ragged in dims and len(dims) > 1:
            raise RuntimeError(f"{name}(): reducing along a ragged and non-batch dimension is not "
                               "supported for nested tensors")
        return _by_part(func, name, first, args, kwargs)
    if first._ragged not in dims:
        raise RuntimeError(f"{name}(): reducing along the batch dimension but not the ragged "
                           "dimension is not supported for nested tensors")
    if kwargs.get("keepdim"):
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0 with keepdim=True")
    inner = sorted(d - 1 for d in dims if d)
    kwargs = {k: v for k, v in kwargs.items() if k not in ("dim", "keepdim")}
    return func(flambeau.cat(first.unbind(), first._ragged - 1), inner, **kwargs)


def _dimension(dim: int, room: int) -> int:
    if not -room <= dim < room:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-room}, "
                         f"{room - 1}], but got {dim})")
    return dim % room


def _are_same_size(self: Any, other: Any) -> bool:
    nested = [isinstance(t, NestedTensor) for t in (self, other)]
    if not all(nested):
        first, second = ("nested" if n else "not nested" for n in nested)
        raise RuntimeError("Expected both self and other to be nested tensors. Self is "
                           f"{first}. While Other is {second}.")
    return self._shapes == other._shapes


def _unsupported(name: str) -> NotImplementedError:
    return without_kernel(name, "NestedTensorCPU")


def _plain(tensor: Tensor) -> Tensor:
    return tensor._elements if isinstance(tensor, NestedTensor) else tensor


def _elementwise(func: Any, title: str, first: NestedTensor, args: Any, kwargs: Any) -> Any:
    others = [t for t in _nested_in((*args, *kwargs.values())) if t is not first]
    if any(t._shapes != first._shapes for t in others):
        raise RuntimeError("cannot call binary pointwise function " + title.strip("_") + " with "
                           "inputs of different nested sizes")
    for other in others:
        if other._length != first._length:
            raise RuntimeError(f"cannot call binary pointwise function {_overload(func, title)} "
                               f"with inputs of shapes {tuple(first.shape)} and "
                               f"{tuple(other.shape)}")
    dense: list[Tensor] = []
    _each((args, kwargs), lambda t: None if isinstance(t, NestedTensor) or not t.ndim
          else dense.append(t))
    alike = all(t._ragged == first._ragged and t._lengths is None for t in others)
    if dense or not alike or (others and first._lengths is not None):
        return _by_part(func, "", first, args, kwargs)
    values = func(*_each(args, _plain), **_each(kwargs, _plain))
    if title.endswith("_") and not title.endswith("__"):
        return args[0]
    return first.with_values(values)


def _overload(func: Any, title: str) -> str:
    """The overload of two tensors, as errors name it."""
    if isinstance(func, OpOverload):
        return func.__name__
    packet = getattr(flambeau.ops.aten, title, None)
    known = packet.overloads() if packet is not None else ()
    return f"{title}.{'Tensor' if 'Tensor' in known else 'default'}"


def _by_part(func: Any, name: str, first: NestedTensor, args: Any, kwargs: Any) -> Any:
    ndim = first.dim()
    if name:
        args, kwargs = _inner_dims(name, ndim, args, kwargs)
    results = []
    for i in range(len(first)):
        def part(tensor: Tensor, i: int = i) -> Tensor:
            if isinstance(tensor, NestedTensor):
                return tensor.unbind()[i]
            shared = name not in _OF_PARAMETERS and tensor.ndim == ndim
            return tensor[i if tensor.shape[0] > 1 else 0] if shared else tensor
        results.append(func(*_each(args, part), **_each(kwargs, part)))
    return _joined(results, first)


def _joined(results: list[Any], first: NestedTensor) -> Any:
    if isinstance(results[0], list | tuple):
        return type(results[0])([_joined(list(r), first) for r in zip(*results)])
    shapes = [tuple(r.shape) for r in results]
    if first._ragged is None:
        return join(results, flambeau.strided)
    lengths = [shape[first._ragged - 1] for shape in first._shapes]
    if len({*shapes}) == 1 and not all(n in shape for n, shape in zip(lengths, shapes)):
        return flambeau.stack(results)          # the dimension that varied has been reduced
    joined = join(results, flambeau.jagged, first._length)
    if [shape[joined._ragged - 1] for shape in joined._shapes] != lengths:
        joined._length = NestedInt()
    return joined


_DIM_AT: dict[str, Any] = {
    "softmax": 1, "log_softmax": 1, "transpose": (1, 2), "unsqueeze": 1, "squeeze": 1,
    "flatten": (1, 2), "unflatten": 1, "chunk": 2, "split": 2, "narrow": 1, "select": 1, "sum": 1,
    "mean": 1, "amax": 1, "amin": 1, "prod": 1, "any": 1, "all": 1, "max": 1, "min": 1,
    "argmax": 1, "argmin": 1, "cumsum": 1, "cumprod": 1,
    "normalize": 2}


def _inner_dims(name: str, ndim: int, args: Any, kwargs: Any) -> Any:
    """Arguments whose dimensions are counted within the parts."""
    def inner(dim: Any) -> Any:
        if isinstance(dim, list | tuple):
            return [inner(d) for d in dim]
        if not isinstance(dim, int):
            return dim
        room = ndim + (name == "unsqueeze")
        dim = _dimension(dim, room)
        if not dim:
            raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0")
        return dim - 1

    places: Any = _DIM_AT.get(name, ())
    places = (places,) if isinstance(places, int) else places
    args = tuple([inner(a) if i in places else a for i, a in enumerate(args)])
    kwargs = {k: inner(v) if k in ("dim", "dim0", "dim1", "start_dim", "end_dim") else v
              for k, v in kwargs.items()}
    if name in ("chunk", "split", "unsqueeze") and len(args) <= max(places) and "dim" not in kwargs:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0")
    return args, kwargs


def _reshaped(first: NestedTensor, sizes: Any) -> NestedTensor:
    wanted = list(sizes[0] if len(sizes) == 1 and isinstance(sizes[0], list | tuple) else sizes)
    if not wanted or wanted[0] not in (len(first), -1):
        raise RuntimeError("reshape: the dimension of the parts of a nested tensor cannot change")
    free = [i for i, n in enumerate(wanted[1:]) if n == -1 or not isinstance(n, int)]
    parts = []
    for part, shape in zip(first.unbind(), first._shapes):
        inner = list(wanted[1:])
        for i in free:                  # -1 is the length of that dimension, as it was
            inner[i] = shape[i] if len(free) > 1 or not isinstance(inner[i], int) else -1
        parts.append(part.reshape(inner))
    return join(parts, first.layout, first._length)

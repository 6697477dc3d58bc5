"""What public calls do with nested tensors of layout `jagged`: the op runs on the values, which
have no dimension of the parts, and which name dimensions one lower."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.core.shapes import wrap_dim
from flambeau.nested.rules import (
    Call,
    Rule,
    by_part,
    each,
    elements,
    entering,
    node_of,
    on_elements,
    same_dims,
)
from flambeau.nested.tensors import OWN, NestedTensor, join, named

rules: dict[str, Rule] = {}
rule = entering(rules)


def raggedness_matches(nt: NestedTensor, size: Any) -> bool:
    """Does a size begin as that of the tensor, up to the ragged dimension?"""
    end = nt._ragged_idx + 1
    for mine, other in zip(nt.shape[:end], list(size)[:end]):
        if mine != other and other != -1:
            return False
    return len(size) >= end


def squeeze_leading_ones(t: Tensor) -> Tensor:
    """Without the first dimensions, where they are of size 1."""
    while t.dim() > 0 and t.shape[0] == 1:
        t = t.squeeze(0)
    return t


def _sizes(x: Any) -> Any:
    return tuple(x.shape) if isinstance(x, NestedTensor) else x.shape


def _title(call: Call) -> str:
    schema: Any = call.schema
    return f"{schema.name}{'_' * call.writes}.{schema.overload or 'default'}"


def inner(x: NestedTensor, dim: int, name: str, ragged: bool = False, room: int = 0) -> int:
    """A dimension of the tensor as one of its values, if the op can take it."""
    dim = wrap_dim(dim, room or x.dim())
    if dim == x._ragged and not ragged:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on ragged dim")
    if not dim:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0")
    return dim - 1


def _own(values: Any, name: str, number: int = 0) -> Any:
    return named(values, f"{name}{OWN}{number}")


# ---- elements -----------------------------------------------------------------------------------

def otherwise(call: Call, x: NestedTensor) -> Any:
    tensors = [v for v in (call.given or {}).values() if isinstance(v, Tensor)]
    if "pointwise" in call.facts and len(tensors) <= 2:
        return on_elements(call, x) if len(tensors) == 1 else _binary(call, *tensors)
    return call.refuse("jagged")


def _binary(call: Call, first: Any, second: Any) -> Any:
    nested = [isinstance(t, NestedTensor) for t in (first, second)]
    shown = [_sizes(t) if all(nested) else t.shape for t in (first, second)]
    wrong = RuntimeError(f"cannot call binary pointwise function {_title(call)} with inputs of "
                         f"shapes {shown[0]} and {shown[1]}")
    x = first if nested[0] else second
    if all(nested):
        if not raggedness_matches(first, second.shape):
            raise wrong
        if first._lengths is not None:
            return by_part(call, *call.args, **call.kwargs)
        return on_elements(call, x)
    dense = second if nested[0] else first
    shared = squeeze_leading_ones(dense)
    if x.dim() >= shared.dim() + 2:
        def change(t: Tensor) -> Tensor:
            return elements(t) if isinstance(t, NestedTensor) else shared
        values = call.func(*each(change, call.args), **call.kwargs)
        return call.args[0] if call.writes else x.with_values(values)
    if dense.dim() != x.dim() or dense.shape[0] not in (1, len(x)) or dense.shape[
            x._ragged] not in (1, max(x._seqlens())):
        raise wrong
    rows = dense.expand(len(x), *dense.shape[1:])
    parts = [call.func(*[row if t is dense else part if t is x else t for t in call.args],
                       **call.kwargs) for part, row in zip(x._parts(), rows)]
    return join(parts, x.layout, x._length, node_of(parts))


@rule("""to type float double half bfloat16 int long short byte char bool clone detach cpu where
    zeros_like ones_like empty_like rand_like randn_like full_like fill zero copy alias
    masked_fill""")
def _on_elements(call: Call, x: NestedTensor) -> Any:
    for other in call.tensors[1:]:
        if not raggedness_matches(x, other.shape):
            raise RuntimeError(f"cannot call binary pointwise function {_title(call)} with inputs "
                               f"of shapes {_sizes(x)} and {_sizes(other)}")
    return on_elements(call, x)


@rule("dropout")
def _dropout(call: Call, x: NestedTensor) -> NestedTensor:
    result = on_elements(call, x)
    return x.with_values(named(result._elements, "NativeDropoutBackward0"))


@rule("contiguous")
def _contiguous(call: Call, x: NestedTensor) -> NestedTensor:
    if x._lengths is not None:                          # there are gaps between parts
        return join(x._parts(), x.layout)
    return x if x.is_contiguous() else x.with_values(x._elements.contiguous())


@rule("new_empty new_zeros new_ones new_full new_tensor")
def _new(call: Call, x: NestedTensor) -> Tensor:
    size = (call.given or {}).get("size")
    if size is not None and tuple(size) != ():
        raise RuntimeError("new_empty() not supported for NJT with shape != ()")
    return call.func(x._elements, *call.args[1:], **call.kwargs)


# ---- dimensions ---------------------------------------------------------------------------------

@rule("softmax log_softmax")
def _softmax(call: Call, x: NestedTensor) -> NestedTensor:
    given = call.by_name("input", "dim")
    dim = wrap_dim(given["dim"], x.dim())
    if not dim:
        raise RuntimeError(f"{call.name}(): not supported when reducing across the batch dimension "
                           "for NestedTensor")
    if dim == x._ragged:
        if call.name == "log_softmax":
            raise RuntimeError("log_softmax(): not supported when reducing along the ragged "
                               "dimension for NestedTensor")
        return by_part(call, x, dim - 1)
    return x.with_values(call.func(x._elements, dim - 1, *call.args[2:], **{
        k: v for k, v in call.kwargs.items() if k != "dim"}))


@rule("transpose")
def _transpose(call: Call, x: NestedTensor) -> NestedTensor:
    first, second = (wrap_dim(d, x.dim()) for d in [*call.rest().values()])
    if first == second:
        return x
    if x._ragged in (first, second):
        if not (first and second):
            raise ValueError("Transpose is not supported on the batch dimension for jagged NT")
        return x.with_values(x._elements.transpose(first - 1, second - 1),
                             second if first == x._ragged else first)
    return x.with_values(x._elements.transpose(inner(x, first, "transpose"),
                                               inner(x, second, "transpose")))


@rule("permute")
def _permute(call: Call, x: NestedTensor) -> NestedTensor:
    dims = [wrap_dim(d, x.dim()) for d in call.rest()["dims"]]
    if dims[:1] != [0]:
        raise ValueError("Permute is not supported on the batch dimension for jagged NT")
    return x.with_values(x._elements.permute([d - 1 for d in dims[1:]]), dims.index(x._ragged))


@rule("unsqueeze")
def _unsqueeze(call: Call, x: NestedTensor) -> NestedTensor:
    at = inner(x, call.rest()["dim"], "unsqueeze", True, x.dim() + 1)
    ragged: Any = x._ragged
    return x.with_values(x._elements.unsqueeze(at), ragged + (at + 1 <= ragged))


@rule("squeeze")
def _squeeze(call: Call, x: NestedTensor) -> Any:
    dim = call.rest().get("dim")
    if not isinstance(dim, int):
        return call.refuse("jagged")
    at, ragged = inner(x, dim, "squeeze"), x._ragged
    gone = x._elements.shape[at] == 1 and at + 1 < ragged
    return x.with_values(_own(x._elements.squeeze(at), "Squeeze"),
                         ragged - gone)


@rule("select")
def _select(call: Call, x: NestedTensor) -> Tensor:
    given, ragged = call.rest(), x._ragged
    dim, index = wrap_dim(given["dim"], x.dim()), given["index"]
    if not dim:
        if not -len(x) <= index < len(x):
            raise IndexError("tuple index out of range")
        return _own(x._parts()[index], "Select")
    at = inner(x, dim, "select")
    return x.with_values(_own(x._elements.select(at, index), "Select"),
                         ragged - (dim < ragged))


@rule("slice")
def _slice(call: Call, x: NestedTensor) -> NestedTensor:
    given = call.rest()
    at = inner(x, given.pop("dim"), "slice")
    return x.with_values(call.func(x._elements, at, *given.values()))


@rule("narrow")
def _narrow(call: Call, x: NestedTensor) -> NestedTensor:
    given = call.rest()
    return x.with_values(x._elements.narrow(inner(x, given["dim"], "narrow"), given["start"],
                                            given["length"]))


@rule("chunk")
def _chunk(call: Call, x: NestedTensor) -> list[NestedTensor]:
    given = call.rest()
    if not wrap_dim(given["dim"], x.dim()):
        step = -(-len(x) // given["chunks"])
        return [join(x._parts()[i:i + step], x.layout, node=f"Chunk{OWN}0")
                for i in range(0, len(x), step)]
    at = inner(x, given["dim"], "chunk")
    return [x.with_values(_own(piece, "Chunk"))
            for piece in x._elements.chunk(given["chunks"], at)]


@rule("split split_with_sizes")
def _split(call: Call, x: NestedTensor) -> Any:
    given = call.by_name("self", "split_sizes", "dim")
    sizes = next(v for k, v in given.items() if k.startswith("split_size"))
    one = isinstance(sizes, int)
    at = inner(x, given.get("dim", 0), "split" if one else "split_with_sizes")
    pieces = x._elements.split(sizes, at)
    return type(pieces)([x.with_values(piece if one else _own(piece, "SplitWithSizes"))
                         for piece in pieces])


# ---- sizes --------------------------------------------------------------------------------------

@rule("view reshape")
def _view(call: Call, x: NestedTensor) -> NestedTensor:
    given = call.args[1:] or [*call.kwargs.values()]
    sizes = list(given[0] if len(given) == 1 and isinstance(given[0], list | tuple) else given)
    ragged: Any = x._ragged
    if not raggedness_matches(x, sizes) or len(sizes) <= ragged:
        raise RuntimeError(f"view(): cannot view shape {_sizes(x)} as {sizes}")
    values, wanted = x._elements, sizes[1:]
    for place in range(ragged):             # the values go on where -1 is a dimension as it was
        wanted[place] = values.shape[place]
    return x.with_values(_own(values.reshape(wanted) if call.name == "reshape"
                              else values.view(wanted), "View"))


@rule("view_as reshape_as")
def _view_as(call: Call, x: NestedTensor) -> Tensor:
    return getattr(x, call.name[:-3])(*next(iter(call.rest().values())).shape)


@rule("flatten")
def _flatten(call: Call, x: NestedTensor) -> NestedTensor:
    given = call.rest()
    start, end = (wrap_dim(given[k], x.dim()) for k in ("start_dim", "end_dim"))
    if start == end:
        return x
    for dim in range(start, end + 1):
        inner(x, dim, "flatten")
    return x.with_values(_own(x._elements.flatten(start - 1, end - 1), "View"),
                         x._ragged - (end - start) * (end < x._ragged))


@rule("unflatten")
def _unflatten(call: Call, x: NestedTensor) -> NestedTensor:
    given = call.by_name("self", "dim", "sizes")
    at, sizes = inner(x, given["dim"], "unflatten"), given["sizes"]
    ragged: Any = x._ragged
    return x.with_values(_own(x._elements.unflatten(at, sizes), "View"),
                         ragged + (len(sizes) - 1) * (at + 1 < ragged))


@rule("expand")
def _expand(call: Call, x: NestedTensor) -> NestedTensor:
    given = call.args[1:]
    sizes = list(given[0] if len(given) == 1 and not isinstance(given[0], int) else given)
    ragged: Any = x._ragged
    if len(sizes) != x.dim() or not raggedness_matches(x, sizes):
        raise RuntimeError(f"expand(): cannot expand shape {_sizes(x)} -> {sizes}")
    return x.with_values(x._elements.expand([
        -1 if d == ragged else size for d, size in enumerate(sizes)][1:]))


@rule("cat stack")
def _cat(call: Call, x: NestedTensor) -> NestedTensor:
    """Tensors with the same parts, one beside the other in a dimension that does not vary."""
    tensors, dim = (*(call.given or {}).values(),)[:2]
    at = inner(x, dim, call.name, room=x.dim() + (call.name == "stack"))
    return x.with_values(call.func([elements(t) for t in tensors], at))


# ---- reductions ---------------------------------------------------------------------------------

_OWN_REDUCTIONS = frozenset({"sum", "mean"})        # of everything


@rule("sum mean amax amin prod any all max min argmax argmin")
def _reduce(call: Call, x: NestedTensor) -> Any:
    """A reduction over some dimensions, all elements of a part at once or all of all parts."""
    given, name = call.rest(), call.name
    if isinstance(given.get("other"), Tensor):
        return _binary(call, x, given["other"])
    if given.get("dim") in (None, ()):
        rows = x._elements if x._lengths is None else join(x._parts(), x.layout)._elements
        result = call.func(rows, **{k: v for k, v in given.items() if v is not None})
        return _own(result, name.capitalize()) if name in _OWN_REDUCTIONS else result
    dims = {*same_dims(given["dim"], x.dim())}
    if 0 not in dims:
        return _reduce_parts(call, x, dims, given)
    if x._ragged not in dims:
        raise RuntimeError(f"{name}(): reducing along the batch dimension but not the ragged "
                           "dimension is not supported for nested tensors")
    if given.get("keepdim"):
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0 with keepdim=True")
    rest = {k: v for k, v in given.items() if k not in ("dim", "keepdim")}
    return call.func(flambeau.cat(x._parts(), x._ragged - 1), sorted(d - 1 for d in dims if d),
                     **rest)


def _reduce_parts(call: Call, x: NestedTensor, dims: set[int], given: dict[str, Any]) -> Any:
    single, ragged = isinstance(given["dim"], int), x._ragged
    if ragged in dims and len(dims) > 1:
        raise RuntimeError(f"{call.name}(): reducing along a ragged and non-batch dimension is not "
                           "supported for nested tensors")
    given["dim"] = min(dims) - 1 if single else sorted(d - 1 for d in dims)
    if ragged in dims:
        parts = [call.func(part, **given) for part in x._parts()]
        return _collected(parts, lambda found: named(flambeau.stack(found), _node(call, found)))
    kept = ragged - (0 if given.get("keepdim")
                     else sum(d < ragged for d in dims))
    found = call.func(x._elements, **given)
    return _collected([found], lambda one: x.with_values(named(one[0], _node(call, one)), kept))


def _node(call: Call, found: list[Tensor]) -> str:
    node = node_of(found)
    return node.replace("Backward", OWN) if call.name == "sum" else node


def _collected(results: list[Any], collect: Any) -> Any:
    """Results of several values, each of them collected."""
    if isinstance(results[0], Tensor):
        return collect(results)
    return type(results[0])([collect([*each]) for each in zip(*results)])


# ---- layers -------------------------------------------------------------------------------------

@rule("linear layer_norm rms_norm")
def _layer(call: Call, x: NestedTensor) -> NestedTensor:
    values = call.func(x._elements, *call.args[1:], **call.kwargs)
    return x.with_values(named(values, "LinearBackward0") if call.name == "linear" else values)


@rule("matmul bmm")
def _matmul(call: Call, x: NestedTensor) -> Any:
    pair = [*(call.given or {}).values()][:2]
    first, second = pair
    nested = [isinstance(t, NestedTensor) for t in pair]
    node = f"{call.name.capitalize()}Backward0"
    if nested == [True, False] and x._ragged == 1 and x._lengths is None:
        if second.dim() == 3 and second.shape[0] == len(x) and x.dim() == 3:
            return join([a @ b for a, b in zip(x._parts(), second)], x.layout, x._length, node)
        if second.dim() == 2 or (second.dim() == x.dim() and second.shape[0] == 1):
            return x.with_values(named(x._elements @ squeeze_leading_ones(second), node))
    if all(nested) and first._length == second._length:
        last = first._ragged == first.dim() - 1 and second._ragged == second.dim() - 2
        if last or first._ragged == second._ragged < first.dim() - 2:
            parts = [a @ b for a, b in zip(first._parts(), second._parts())]
            return named(flambeau.stack(parts), node) if last else join(
                parts, x.layout, x._length, node)
    raise RuntimeError(f"matmul(): not supported between inputs of shapes {_sizes(first)} and "
                       f"{second.shape}")


@rule("scaled_dot_product_attention")
def _attention(call: Call, x: NestedTensor) -> Tensor:
    """Among the elements of each part: no part sees another."""
    names = ("query", "key", "value")
    given = call.by_name(*names, "attn_mask", "dropout_p", "is_causal")
    if given.pop("attn_mask", None) is not None:
        raise ValueError("Masks are not yet supported!")
    if given.pop("is_causal", False):
        raise RuntimeError("No viable backend for scaled_dot_product_attention was found.")
    tensors = [given.pop(name)._parts() for name in names]
    parts = [call.func(*three, **given).transpose(0, 1) for three in zip(*tensors)]
    return join(parts, x.layout, x._length).transpose(1, 2)


__all__ = ["otherwise", "raggedness_matches", "rules", "squeeze_leading_ones"]

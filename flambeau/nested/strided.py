"""What public calls do with nested tensors of layout `strided`: the rules are PyTorch's kernels,
which are few. What is elementwise runs on the elements, all else part by part."""
from __future__ import annotations

import math
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._support.devices.backends import has_no_kernel
from flambeau.core.shapes import wrap_dim
from flambeau.dispatch.aten.schemas import recorded_overload
from flambeau.dispatch.backend_errors import without_kernel
from flambeau.nested.rules import (
    BACKEND,
    Call,
    Rule,
    by_part,
    entering,
    on_elements,
    same_dims,
)
from flambeau.nested.tensors import OWN, NestedTensor, join, named
from flambeau.ops.view.splitting import read_places

rules: dict[str, Rule] = {}
rule = entering(rules)


def _no_sizes() -> RuntimeError:
    return RuntimeError("Internal error: NestedTensorImpl doesn't support sizes. Please file an "
                        "issue.")


def _no_kernel(full_name: str) -> NotImplementedError:
    name, _, overload = full_name.partition(".")
    known = recorded_overload(name, overload)
    return has_no_kernel(full_name, BACKEND, () if known is None else known.facts)


def _scattered(result: NestedTensor) -> NestedTensor:
    """A result that is a view of memory with gaps."""
    result._dense = False
    return result


def otherwise(call: Call, x: NestedTensor) -> Any:
    if call.fit is None:
        return call.refuse("")
    if "pointwise" in call.facts:
        _check_operands(call)
        return on_elements(call, x)
    if "implicit" in call.facts and call.schema is not None and (
            call.schema.is_view or not call.fit[0].op.composite):
        raise _no_sizes()
    return call.refuse("")


def _check_operands(call: Call) -> None:
    given = [v for v in (call.given or {}).values() if isinstance(v, Tensor)][:2]
    if len(given) < 2 or call.name not in ("add", "sub", "mul", "div", "eq"):
        return
    nested = [isinstance(t, NestedTensor) for t in given]
    if call.name == "eq":
        if nested[1]:
            raise RuntimeError("eq does not support nested tensor as other value.")
    elif not all(nested):
        if given[nested.index(False)].numel() != 1:
            first, second = ("nested" if n else "non-nested" for n in nested)
            raise RuntimeError(f"Expected both self and other to be nested, but got a {first} self "
                               f"and {second} other")
    elif given[0]._shapes != given[1]._shapes:              # type: ignore[attr-defined]
        raise RuntimeError(f"{call.name} does not support broadcasting when given a NestedTensor")


@rule("""to type float double half bfloat16 int long short byte char bool clone detach cpu dropout
    zeros_like ones_like empty_like randn_like fill zero copy alias masked_fill contiguous""")
def _on_elements(call: Call, x: NestedTensor) -> Any:
    result = on_elements(call, x)
    if call.name == "dropout":
        result = x.with_values(named(result._elements, "NativeDropoutBackward0"))
    if isinstance(result, NestedTensor) and call.name in ("contiguous", "clone"):
        if call.name == "contiguous" and not x._dense:
            result = x.with_values(x._elements.clone())
        result._dense = True
    return result


@rule("sum")
def _sum(call: Call, x: NestedTensor) -> Any:
    if call.given is None or call.given.get("dim") is None:
        raise without_kernel("sum", "NestedTensorCPU")
    for dim in same_dims(call.given["dim"], x.dim()):
        if dim != x.dim() - 1:
            raise RuntimeError("NestedTensor can only be reduced across the last dimension for now "
                               f"got dimension {dim} instead.")
    if not call.given["keepdim"]:
        raise RuntimeError("NestedTensor always requires keepdim=True for now.")
    return by_part(call, x, node=f"Sum{OWN}1", **call.rest(dim=-1))


@rule("softmax")
def _softmax(call: Call, x: NestedTensor) -> Any:
    found = call.by_name("input", "dim")
    dim = wrap_dim(found["dim"], x.dim())
    if not dim:
        raise RuntimeError("Cannot apply softmax across nested dimension 0")
    return by_part(call, x, dim - 1)


@rule("log_softmax")
def _log_softmax(call: Call, x: NestedTensor) -> Any:
    raise without_kernel("_log_softmax", "NestedTensorCPU")


@rule("transpose")
def _transpose(call: Call, x: NestedTensor) -> NestedTensor:
    first, second = (wrap_dim(d, x.dim()) for d in [*call.rest().values()])
    if first == second:
        return x
    if not (first and second):
        raise RuntimeError("Nested tensor dimension 0 cannot be transposed")
    return _scattered(by_part(call, x, first - 1, second - 1))


@rule("unsqueeze")
def _unsqueeze(call: Call, x: NestedTensor) -> NestedTensor:
    dim = wrap_dim(call.rest()["dim"], x.dim() + 1)
    if not dim:
        raise RuntimeError("unsqueeze(): For nested tensors, unsqueezing dimension 0 is not "
                           "supported at the moment if you need this feature, please open an issue "
                           "on github describing your use case.")
    return by_part(call, x, dim - 1)


@rule("squeeze")
def _squeeze(call: Call, x: NestedTensor) -> NestedTensor:
    dims = call.rest().get("dim")
    if not isinstance(dims, int):
        raise RuntimeError("squeeze(): For nested tensors, squeeze without the dim argument is not "
                           "supported at the moment, however you can use squeeze(Tensor self, int "
                           "dim) instead if you need this feature, please open an issue on github "
                           "describing your use case.")
    dim = wrap_dim(dims, x.dim())
    if not dim:
        raise RuntimeError("squeeze(): For nested tensors, squeezing dimension 0 is not supported "
                           "at the moment if you need this feature, please open an issue on github "
                           "describing your use case.")
    return by_part(call, x, dim - 1, node=f"Squeeze{OWN}0")


@rule("chunk")
def _chunk(call: Call, x: NestedTensor) -> list[NestedTensor]:
    given = call.rest()
    if wrap_dim(given["dim"], x.dim()) != x.dim() - 1:
        raise RuntimeError("Chunk for nested tensors is currently only supported for the last "
                           "dimension.")
    return _pieces(call, x, f"Chunk{OWN}0", chunks=given["chunks"], dim=-1)


@rule("split_with_sizes split")
def _split(call: Call, x: NestedTensor) -> Any:
    given = call.by_name("self", "split_sizes", "dim")
    sizes = next(v for k, v in given.items() if k.startswith("split_size"))
    if isinstance(sizes, int):
        if x.requires_grad:
            raise _no_sizes()
        raise _no_kernel("split.Tensor")
    if wrap_dim(given.get("dim", 0), x.dim()) != x.dim() - 1:
        raise RuntimeError("split_with_sizes for nested tensors is currently only supported for "
                           "the last dimension.")
    call.func = flambeau.split_with_sizes
    return _pieces(call, x, f"SplitWithSizes{OWN}0", split_sizes=sizes, dim=-1)


def _pieces(call: Call, x: NestedTensor, node: str, **given: Any) -> list[NestedTensor]:
    parts = [call.func(part, **given) for part in x._parts()]
    return [_scattered(join(pieces, x.layout, node=node)) for pieces in zip(*parts)]


@rule("select")
def _select(call: Call, x: NestedTensor) -> Tensor:
    given = call.rest()
    dim = wrap_dim(given["dim"], x.dim())
    if not dim:
        part = x._parts()[_place(given["index"], len(x))]
        return named(part, f"Select{OWN}0")
    return _scattered(by_part(call, x, dim - 1, given["index"], node=f"Select{OWN}0"))


def _place(index: int, count: int) -> int:
    if not -count <= index < count:
        raise IndexError(f"index {index} is out of bounds for dimension 0 with size {count}")
    return index


@rule("slice")
def _slice(call: Call, x: NestedTensor) -> Any:
    if x.requires_grad:
        raise _no_sizes()
    raise _no_kernel("slice.Tensor")


@rule("tensor_split")
def _tensor_split(call: Call, x: NestedTensor) -> Any:
    places = call.rest().get("tensor_indices_or_sections")
    if places is not None:
        read_places(places)
    return _slice(call, x)


@rule("narrow")
def _narrow(call: Call, x: NestedTensor) -> NestedTensor:
    given = call.rest()
    if given["dim"] != 0:
        raise RuntimeError("narrow(): only dim=0 supported for nested tensors, but got: "
                           f"{given['dim']}")
    return join(x._parts()[given["start"]:given["start"] + given["length"]], x.layout)


@rule("linear")
def _linear(call: Call, x: NestedTensor) -> NestedTensor:
    return by_part(call, x, node="LinearBackward0", **call.rest())


@rule("layer_norm")
def _layer_norm(call: Call, x: NestedTensor) -> NestedTensor:
    given = call.by_name("input", "normalized_shape", "weight", "bias", "eps")
    if given.get("weight") is None or given.get("bias") is None:
        raise ValueError("NestedTensor layer_norm requires weight and bias")
    return by_part(call, *call.args, **call.kwargs)


@rule("matmul bmm")
def _matmul(call: Call, x: NestedTensor) -> NestedTensor:
    pair = [*(call.given or {}).values()][:2]
    nested = [isinstance(t, NestedTensor) for t in pair]
    if call.name == "bmm" and nested == [True, False] and pair[1].dim() == 3:
        return join([a @ b for a, b in zip(x._parts(), pair[1])], x.layout, node="BmmBackward0")
    if not all(nested):
        first, second = ("nested" if n else "non-nested" for n in nested)
        raise RuntimeError(f"Expected both to be nested, but got a {first} self and {second} other")
    call.func = flambeau.matmul
    return by_part(call, *pair, node=f"{call.name.capitalize()}Backward0")


@rule("view reshape")
def _view(call: Call, x: NestedTensor) -> NestedTensor:
    sizes = [*next(v for v in call.rest().values() if isinstance(v, tuple))]
    name = call.name
    if len(sizes) == 0:
        raise RuntimeError(f"shape '[]' is invalid for input of size {x.numel()}")
    if sizes[0] != len(x):
        raise RuntimeError(f"{name}: For now nested {name} cannot change or infer the implicit "
                           "batch dimension")
    inner, parts = sizes[1:], []
    for part in x._parts():
        wanted = [part.shape[i] if n == -1 and i < part.dim() else n for i, n in enumerate(inner)]
        if math.prod(wanted) != part.numel():
            raise RuntimeError(f"shape '{sizes}' is invalid for input of size {part.numel()}")
        parts.append(part.reshape(wanted))
    return join(parts, x.layout, node=f"View{OWN}0")


@rule("view_as reshape_as")
def _view_as(call: Call, x: NestedTensor) -> NestedTensor:
    if call.name == "view_as":
        raise _no_sizes()
    shapes = next(iter(call.rest().values()))._shapes
    return join([part.reshape(shape) for part, shape in zip(x._parts(), shapes)], x.layout,
                node=f"View{OWN}0")


@rule("cat")
def _cat(call: Call, x: NestedTensor) -> NestedTensor:
    tensors, dim = (*(call.given or {}).values(),)[:2]
    dim = wrap_dim(dim, x.dim())
    if not dim:
        return join([p for tensor in tensors for p in tensor.unbind()], x.layout)
    return join([flambeau.cat(parts, dim - 1) for parts in zip(*[t.unbind() for t in tensors])],
                x.layout)


@rule("embedding")
def _embed(call: Call, x: NestedTensor) -> NestedTensor:
    return by_part(call, *call.args, **call.kwargs)


@rule("scaled_dot_product_attention")
def _attention(call: Call, x: NestedTensor) -> NestedTensor:
    given = call.by_name("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
    if given.get("attn_mask") is not None:
        raise RuntimeError("Scaled_dot_product_attention: Nested tensors for query / key are not "
                           "supported when an explicit attn_mask is set")
    if given.get("is_causal"):
        raise RuntimeError("_scaled_dot_product_attention: Nested tensors for query / key are not "
                           "supported when is_causal=True")
    return by_part(call, *call.args, **call.kwargs)


@rule("permute t")
def _permute(call: Call, x: NestedTensor) -> Any:
    raise without_kernel(call.name, "NestedTensorCPU")


@rule("where")
def _where(call: Call, x: NestedTensor) -> Any:
    raise RuntimeError("self must not be nested")


__all__ = ["otherwise", "rules"]

"""Einstein's summation convention: products of tensors whose dimensions have names."""
from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

from flambeau.core.op import module_of, public
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import op
from flambeau.dispatch.python_functions import python_function
from flambeau.ops.linalg.matmul import bmm
from flambeau.ops.pointwise.arithmetic import mul
from flambeau.ops.reduction.sums import sum
from flambeau.ops.view.diagonal import diagonal
from flambeau.ops.view.reshaping import reshape_to, view
from flambeau.ops.view.shape import inverse, movedim, permute_to, unsqueeze

ELLIPSIS = "..."
unsqueeze_at, view_as_shape = unsqueeze.op.call, view.op.call


def einsum(*args: Any) -> Tensor:
    """Sums of products of elements, where letters name dimensions: `einsum("ik,kj->ij", a, b)` is
    the matrix product. A letter that the output lacks is summed over; "..." stands for any
    dimensions, which broadcast. Without "->", letters that occur once are kept, in alphabetical
    order. The other form is `einsum(a, [0, 2], b, [2, 1], [0, 1])`.

    More than two operands are multiplied in the order that opt_einsum finds, where it is installed
    (Smith and Gray, opt_einsum, 2018) and `backends.opt_einsum.enabled`, else from left to right.

    >>> import flambeau
    >>> flambeau.einsum("ii", flambeau.ones(3, 3))
    tensor(3.)
    >>> flambeau.einsum("bi,ij,bj->b", flambeau.ones(2, 3), flambeau.eye(3), flambeau.ones(2, 3))
    tensor([3., 3.])
    """
    if len(args) == 2 and isinstance(args[0], str) and isinstance(args[1], (tuple, list)):
        args = (args[0], *args[1])          # so that overrides see the operands, not a list
    return _declared(*args)


def _einsum(*args: Any) -> Tensor:
    if len(args) < 2:
        raise ValueError("einsum(): must specify the equation string and at least one operand, or "
                         "at least one operand and its subscripts list")
    inputs, output, operands = _from_lists(args) if isinstance(args[0], Tensor) \
        else (None, None, list(args[1:]))
    for i, operand in enumerate(operands):
        if not isinstance(operand, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 1, but got "
                            f"{type(operand).__name__}")
    return _of_equation(args[0], operands) if inputs is None \
        else _evaluate([list(i) for i in inputs], output, operands)


@op("einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor", function=False,
    method=False, out=False)
def _of_equation(equation: str, tensors: Any, path: Any) -> Tensor:
    inputs, output = _parse(equation)
    if len(inputs) != len(tensors):
        more = "more" if len(tensors) > len(inputs) else "fewer"
        raise RuntimeError(f"einsum(): {more} operands were provided than specified in the "
                           "equation")
    return _evaluate([list(i) for i in inputs], output, list(tensors))


_einsum.__doc__ = einsum.__doc__
_declared: Any = python_function(_einsum, name="einsum", of=_of_equation)
einsum.__module__ = module_of("functional")
vars(einsum)["op"] = _declared.op
_declared.op.published = public["torch"]["einsum"] = einsum


# ---- the equation -------------------------------------------------------------------------------


def _labels(text: str, where: str) -> list[Any]:
    found: list[Any] = []
    i = 0
    while i < len(text):
        c = text[i]
        if c == " ":
            i += 1
        elif c == ".":
            if text[i:i + 3] != "..." or ELLIPSIS in found:
                raise RuntimeError("einsum(): found '.' for "
                                   f"{where} that is not part of any ellipsis"
                                   if text[i:i + 3] != "..." else
                                   "einsum(): found '.' for "
                                   f"{where} for which an ellipsis was already found")
            found.append(ELLIPSIS)
            i += 3
        elif c.isascii() and c.isalpha():
            found.append(c)
            i += 1
        else:
            raise RuntimeError(f"einsum(): invalid subscript given at index {i} in the equation "
                               "string, subscripts must be in [a-zA-Z]")
    return found


@lru_cache(maxsize=256)
def _parse(equation: str) -> tuple[list[list[Any]], list[Any] | None]:
    left, arrow, right = equation.partition("->")
    inputs = [_labels(part, f"operand {i}") for i, part in enumerate(left.split(","))]
    return inputs, _labels(right, "the output") if arrow else None


def _from_lists(args: Any) -> tuple[list[list[Any]], list[Any] | None, list[Tensor]]:
    """The form `operand, labels, operand, labels, …, [output labels]`."""
    operands, inputs = list(args[:len(args) - len(args) % 2:2]), list(args[1::2])
    output = args[-1] if len(args) % 2 else None

    def named(labels: Any) -> list[Any]:
        for n in labels:
            if n is not Ellipsis and not 0 <= n < 52:
                raise RuntimeError("einsum(): not within the valid range [0, 52)")
        return [ELLIPSIS if n is Ellipsis else chr(ord("A") + n if n < 26 else ord("a") + n - 26)
                for n in labels]
    return [named(i) for i in inputs], None if output is None else named(output), operands


# ---- evaluation ---------------------------------------------------------------------------------


def _evaluate(inputs: list[list[Any]], output: list[Any] | None,
              operands: list[Tensor]) -> Tensor:
    wide = 0
    for i, (labels, x) in enumerate(zip(inputs, operands)):
        named = len(labels) - (ELLIPSIS in labels)
        rank = x._array.ndim
        if ELLIPSIS in labels:
            wide = max(wide, rank - named)
        if rank < named or (rank > named and ELLIPSIS not in labels):
            how = "is more than" if rank < named and ELLIPSIS in labels else "does not match"
            ending = "" if ELLIPSIS in labels else " and no ellipsis was given"
            raise RuntimeError(f"einsum(): the number of subscripts in the equation ({named}) "
                               f"{how} the number of dimensions ({rank}) for operand {i}{ending}")
    # the dimensions of an ellipsis are labelled by number, the last one 0
    for i, (labels, x) in enumerate(zip(inputs, operands)):
        if ELLIPSIS in labels:
            at, missing = labels.index(ELLIPSIS), wide - x._array.ndim + len(labels) - 1
            inputs[i] = labels[:at] + list(range(wide - 1, -1, -1)) + labels[at + 1:]
            for _ in range(missing):
                operands[i] = unsqueeze_at(operands[i], at)
    output = _output_labels(inputs, output, wide)
    sizes = _sizes(inputs, operands)
    order = [*output, *sorted(sizes.keys() - set(output), key=_rank)]
    terms = [_spread(x, labels, order) for x, labels in zip(operands, inputs)]
    for i, j in _order(inputs, output, sizes):
        second, first = terms.pop(max(i, j)), terms.pop(min(i, j))
        if i > j:
            first, second = second, first
        summed = [d for d in range(len(output), len(order))
                  if all(x._array.shape[d] == 1 for x in terms)]
        terms.append(_pair_product(first, second, summed))
    result, = terms
    if len(order) == len(output):
        return result
    if len(operands) == 1:
        return sum(result, tuple(range(len(output), len(order))))
    return view_as_shape(result, result._array.shape[:len(output)])


def _rank(label: Any) -> Any:
    """Of labels that are summed over: those of the ellipsis come first, then capitals."""
    return (0, -label) if isinstance(label, int) else (1, ord(label))


def _output_labels(inputs: list[list[Any]], output: list[Any] | None, wide: int) -> list[Any]:
    everything = [n for labels in inputs for n in labels]
    if output is None:
        once = sorted(n for n in set(everything) if isinstance(n, str) and everything.count(n) == 1)
        return list(range(wide - 1, -1, -1)) + once
    for n in output:
        if n != ELLIPSIS and n not in everything:
            raise RuntimeError(f"einsum(): output subscript {n} does not appear in the equation "
                               "for any input operand")
        if output.count(n) > 1:
            raise RuntimeError(f"einsum(): output subscript {n} appears more than once in the "
                               "output")
    if ELLIPSIS in output:
        at = output.index(ELLIPSIS)
        return output[:at] + list(range(wide - 1, -1, -1)) + output[at + 1:]
    return list(output)


def _sizes(inputs: list[list[Any]], operands: list[Tensor]) -> dict[Any, int]:
    """The extent of each label; 1 broadcasts."""
    sizes: dict[Any, int] = {}
    for i, (labels, x) in enumerate(zip(inputs, operands)):
        own: dict[Any, int] = {}
        for label, n in zip(labels, x._array.shape):
            if own.setdefault(label, n) != n:
                raise RuntimeError(f"einsum(): subscript {label} is repeated for operand {i} but "
                                   f"the sizes don't match, {n} != {own[label]}")
            known = sizes.get(label, 1)
            if known != n and known != 1 and n != 1:
                raise RuntimeError(f"einsum(): subscript {label} has size {n} for operand {i} "
                                   f"which does not broadcast with previously seen size {known}")
            sizes[label] = n if known == 1 else known
    return sizes


def _diagonals(x: Tensor, labels: list[Any]) -> tuple[Tensor, list[Any]]:
    """Repeated labels taken along the diagonal, in the place of the first."""
    labels = list(labels)
    for label in [n for i, n in enumerate(labels) if n in labels[:i]]:
        at = labels.index(label)
        again = labels.index(label, at + 1)
        x = movedim(diagonal(x, 0, at, again), -1, at)
        del labels[again]
    return x, labels


def _spread(x: Tensor, labels: list[Any], order: list[Any]) -> Tensor:
    """A term has a dimension for each label, in this order: those that it lacks of extent 1."""
    x, labels = _diagonals(x, labels)
    missing = iter(range(len(labels), len(order)))
    for n in range(len(labels), len(order)):
        x = unsqueeze_at(x, n)
    return permute_to(x, tuple([labels.index(n) if n in labels else next(missing)
                                for n in order]))


def _order(inputs: list[Any], output: list[Any], sizes: dict[Any, int]) -> list[tuple[int, int]]:
    """Which two terms to multiply next, each time; the product goes to the end."""
    count = len(inputs)
    if count <= 2:
        return [(0, 1)] * (count - 1)
    from flambeau import backends  # which is built on ops
    opt_einsum = backends.opt_einsum.enabled and backends.opt_einsum.get_opt_einsum()
    if not opt_einsum:
        return [(0, 1)] + [(n - 1, 0) for n in range(count - 1, 1, -1)]
    names = {n: opt_einsum.get_symbol(i) for i, n in enumerate(sizes)}
    distinct = [list(dict.fromkeys(labels)) for labels in inputs]
    equation = ",".join("".join(names[n] for n in labels) for labels in distinct) + "->" \
        + "".join(names[n] for n in output)
    return _best_order(equation, backends.opt_einsum.strategy,
                       *(tuple(sizes[n] for n in labels) for labels in distinct))


@lru_cache(maxsize=256)
def _best_order(equation: str, strategy: str, *shapes: tuple[int, ...]) -> list[Any]:
    import opt_einsum
    path = opt_einsum.contract_path(equation, *shapes, shapes=True, optimize=strategy,
                                    memory_limit=None)[0]
    return [tuple(sorted(step)) for step in path if len(step) == 2]


def _pair_product(x: Tensor, y: Tensor, summed: list[int]) -> Tensor:
    """Two terms multiplied, and summed over these dimensions, whose extent becomes 1: one `bmm`,
    with the shared dimensions that stay in front, and those summed over inside."""
    wide_x, wide_y = [[n != 1 for n in t._array.shape] for t in (x, y)]
    if alone := tuple([d for d in summed if wide_x[d] and not wide_y[d]]):
        x = sum(x, alone, True)
    if others := tuple([d for d in summed if wide_y[d] and not wide_x[d]]):
        y = sum(y, others, True)
    inside = [d for d in summed if wide_x[d] and wide_y[d]]
    if not inside:
        return mul(x, y)
    dims = [d for d in range(len(wide_x)) if d not in inside]
    batch = [d for d in dims if wide_x[d] and wide_y[d]]
    left = [d for d in dims if wide_x[d] and not wide_y[d] and d not in alone]
    right = [d for d in dims if d not in batch and d not in left]
    if left and right and right[-1] < left[0]:      # then the product is in order the other way
        x, y, left, right = y, x, right, left
    of_x, of_y = x._array.shape, y._array.shape
    n, rows, depth, columns = [prod([max(of_x[d], of_y[d]) if of_x[d] and of_y[d] else 0
                                     for d in group]) for group in (batch, left, inside, right)]
    product = bmm(reshape_to(permute_to(x, (*batch, *left, *inside, *right)), (n, rows, depth)),
                  reshape_to(permute_to(y, (*batch, *inside, *right, *left)), (n, depth, columns)))
    order = (*batch, *left, *inside, *right)
    product = view_as_shape(product, (*[of_x[d] for d in (*batch, *left)], *[1] * len(inside),
                                      *[of_y[d] for d in right]))
    return permute_to(product, inverse(order))

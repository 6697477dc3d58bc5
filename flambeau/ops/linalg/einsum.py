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
from flambeau.ops.view.reshaping import reshape
from flambeau.ops.view.shape import permute

ELLIPSIS = "..."


def einsum(*args: Any) -> Tensor:
    """Sums of products of elements, where letters name dimensions: `einsum("ik,kj->ij", a, b)` is
    the matrix product. A letter that the output lacks is summed over; "..." stands for any
    dimensions, which broadcast. Without "->", letters that occur once are kept, in alphabetical
    order. The other form is `einsum(a, [0, 2], b, [2, 1], [0, 1])`.

    More than two operands are multiplied in the order that opt_einsum finds, where it is installed
    (Smith and Gray, opt_einsum, 2018), else from left to right.

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
einsum.__module__ = module_of("torch")
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
            at, n = labels.index(ELLIPSIS), x._array.ndim - len(labels) + 1
            inputs[i] = labels[:at] + list(range(n - 1, -1, -1)) + labels[at + 1:]
    output = _output_labels(inputs, output, wide)
    sizes = _sizes(inputs, operands)
    terms = [_diagonals(x, labels) for x, labels in zip(operands, inputs)]
    in_order = [*output, *sorted(sizes.keys() - set(output), key=str)]
    for i, j in _order(terms, output, sizes):
        second, first = terms.pop(max(i, j)), terms.pop(min(i, j))
        if i > j:
            first, second = second, first
        kept = {n for _, labels in terms for n in labels} | set(output)
        if len(operands) == 2 and _better_swapped(first, second, output):
            first, second = second, first
        terms.append(_pair_product(first, second, kept, in_order))
    return _finish(*terms[0], output)


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
    """Repeated labels taken along the diagonal."""
    labels = list(labels)
    for label in [n for i, n in enumerate(labels) if n in labels[:i]]:
        a = labels.index(label)
        b = labels.index(label, a + 1)
        x = diagonal(x, 0, a, b)
        labels = [n for i, n in enumerate(labels) if i not in (a, b)] + [label]
    return x, labels


def _order(terms: list[Any], output: list[Any], sizes: dict[Any, int]) -> list[tuple[int, int]]:
    """Which two terms to multiply next, each time; the product goes to the end."""
    count = len(terms)
    if count <= 2:
        return [(0, 1)] * (count - 1)
    try:
        import opt_einsum
    except ImportError:
        return [(0, 1)] + [(n - 1, 0) for n in range(count - 1, 1, -1)]
    names = {n: opt_einsum.get_symbol(i) for i, n in enumerate(sizes)}
    equation = ",".join("".join(names[n] for n in labels) for _, labels in terms) + "->" \
        + "".join(names[n] for n in output)
    return _best_order(equation, *(tuple(sizes[n] for n in labels) for _, labels in terms))


@lru_cache(maxsize=256)
def _best_order(equation: str, *shapes: tuple[int, ...]) -> list[Any]:
    import opt_einsum
    path = opt_einsum.contract_path(equation, *shapes, shapes=True, memory_limit=None)[0]
    return [tuple(sorted(step)) for step in path if len(step) == 2]


def _better_swapped(first: Any, second: Any, output: list[Any]) -> bool:
    """Do the two only operands give the output in its own order when the second comes first?"""
    (x, a), (y, b) = first, second
    if any(n not in output for n in set(a) ^ set(b)):
        return False
    wide_a, wide_b = _wide(x, a), _wide(y, b)
    of_first = [n in wide_a for n in output if not (n in wide_a and n in wide_b)]
    return True in of_first and not of_first[0] and of_first == sorted(of_first)


def _pair_product(first: Any, second: Any, kept: set[Any],
                  in_order: list[Any]) -> tuple[Tensor, list[Any]]:
    """Two terms multiplied, and summed over the labels that nothing else needs: one `bmm` with the
    shared labels that stay in front, and those summed over inside."""
    (x, a), (y, b) = first, second
    wide_a, wide_b = _wide(x, a), _wide(y, b)
    x, a = _without(x, a, [n for n in a if n in wide_a and n not in kept and n not in wide_b])
    y, b = _without(y, b, [n for n in b if n in wide_b and n not in kept and n not in wide_a])
    inside = [n for n in a if n not in kept and n in wide_a and n in wide_b]
    labels = [n for n in in_order if n in kept and (n in a or n in b)]
    if not inside:                          # a label of extent 1, or that is missing, broadcasts
        return mul(_aligned(x, a, [labels], wide_a), _aligned(y, b, [labels], wide_b)), labels
    batch = [n for n in labels if n in wide_a and n in wide_b]
    left = [n for n in labels if n in wide_a and n not in wide_b]
    right = [n for n in labels if n not in wide_a]
    product = bmm(_aligned(x, a, [batch, left, inside], wide_a, join=True),
                  _aligned(y, b, [batch, inside, right], wide_b, join=True))
    labels, extents = batch + left + right, wide_a | wide_b
    return reshape(product, [extents.get(n, 1) for n in labels]), labels


def _wide(x: Tensor, labels: list[Any]) -> dict[Any, int]:
    """The extents of the labels that do not broadcast."""
    return {label: n for label, n in zip(labels, x._array.shape) if n != 1}


def _aligned(x: Tensor, labels: list[Any], groups: list[list[Any]], wide: dict[Any, int],
             join: bool = False) -> Tensor:
    """`x` with the dimensions of these groups in this order, those that it lacks of extent 1; each
    group joined to one dimension, if so asked."""
    wanted = [n for group in groups for n in group if n in wide]
    x = _ordered(x, labels, wanted + [n for n in labels if n not in wanted])
    extents = [[wide.get(n, 1) for n in group] for group in groups]
    shape = [prod(n) for n in extents] if join else [n for group in extents for n in group]
    return x if shape == list(x._array.shape) else reshape(x, shape)


def _without(x: Tensor, labels: list[Any], drop: list[Any]) -> tuple[Tensor, list[Any]]:
    if not drop:
        return x, labels
    dims = tuple([labels.index(n) for n in drop])
    return sum(x, dims), [n for n in labels if n not in drop]


def _ordered(x: Tensor, labels: list[Any], wanted: list[Any]) -> Tensor:
    if labels == wanted:
        return x
    return permute(x, [labels.index(n) for n in wanted])


def _finish(x: Tensor, labels: list[Any], output: list[Any]) -> Tensor:
    x, labels = _without(x, labels, [n for n in labels if n not in output])
    return _ordered(x, labels, output)

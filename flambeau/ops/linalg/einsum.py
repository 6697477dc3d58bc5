"""Einstein's summation convention: products of tensors whose dimensions have names."""
from __future__ import annotations

from collections.abc import Sequence
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
from flambeau.schema.errors import type_name

ELLIPSIS = "..."
Labels = tuple[Any, ...]
Inputs = tuple[Labels, ...]
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
    if not isinstance(args[0], (Tensor, str, bytes)):
        raise TypeError("einsum(): argument 'equation' (position 1) must be str, not "
                        f"{type_name(args[0])}")
    inputs, output, operands = _from_lists(args) if isinstance(args[0], Tensor) \
        else (None, None, list(args[1:]))
    for i, operand in enumerate(operands):
        if not isinstance(operand, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 1, but got "
                            f"{type_name(operand)}")
    return _of_equation(args[0], operands) if inputs is None \
        else _evaluate(inputs, output, operands)


@op("einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor", function=False,
    method=False, out=False)
def _of_equation(equation: str, tensors: Any, path: Any) -> Tensor:
    inputs, output = _parse(equation, len(tensors))
    if isinstance(output, RuntimeError):    # said after what is wrong with the operands
        _ellipsis_rank(inputs, [x._array.shape for x in tensors])
        raise output
    return _evaluate(inputs, output, tensors)


_einsum.__doc__ = einsum.__doc__
_declared: Any = python_function(_einsum, name="einsum", of=_of_equation)
einsum.__module__ = module_of("functional")
vars(einsum)["op"] = _declared.op
_declared.op.published = public["torch"]["einsum"] = einsum


# ---- the equation -------------------------------------------------------------------------------


def _labels(text: str, where: str, start: int = 0) -> list[Any]:
    """The labels of a part of the equation, which begins there at `start`."""
    found: list[Any] = []
    i = 0
    while i < len(text):
        c = text[i]
        if c == " ":
            i += 1
        elif c == ".":
            if text[i:i + 3] != "...":
                raise RuntimeError(f"einsum(): found '.' for {where} that is not part of any "
                                   "ellipsis" + " (...)" * (where == "output"))
            if ELLIPSIS in found:
                _raise_second_ellipsis(where)
            found.append(ELLIPSIS)
            i += 3
        elif c.isascii() and c.isalpha():
            found.append(c)
            i += 1
        else:
            raise RuntimeError(f"einsum(): invalid subscript given at index {start + i} in the "
                               "equation string, subscripts must be in [a-zA-Z]")
    return found


def _raise_second_ellipsis(where: str) -> None:
    which = "but an ellipsis (...)" if where == "output" else "for which an ellipsis"
    raise RuntimeError(f"einsum(): found '.' for {where} {which} was already found")


@lru_cache(maxsize=256)
def _parse(equation: str, operands: int) -> tuple[Inputs, Labels | RuntimeError | None]:
    """The labels of the operands and of the output, or what is wrong with the latter."""
    left, arrow, right = equation.partition("->")
    inputs: list[Labels] = []
    start = 0
    for i, part in enumerate(left.split(",")):
        if i == operands:
            raise RuntimeError("einsum(): fewer operands were provided than specified in the "
                               "equation")
        inputs.append(tuple(_labels(part, f"operand {i}", start)))
        start += len(part) + 1
    if len(inputs) < operands:
        raise RuntimeError("einsum(): more operands were provided than specified in the equation")
    try:
        output = tuple(_labels(right, "output", len(left) + 2)) if arrow else None
    except RuntimeError as wrong:
        return tuple(inputs), wrong
    return tuple(inputs), output


def _from_lists(args: Any) -> tuple[Inputs, Labels | None, list[Tensor]]:
    """The form `operand, labels, operand, labels, …, [output labels]`."""
    operands, inputs = list(args[:len(args) - len(args) % 2:2]), list(args[1::2])
    output = args[-1] if len(args) % 2 else None

    def named(labels: Any, where: str) -> Labels:
        for k, n in enumerate(labels):
            if n is Ellipsis and Ellipsis in labels[:k]:
                _raise_second_ellipsis(where)
            if n is not Ellipsis and not (n >= 0 and n < 52):
                raise ValueError("einsum(): subscript in subscript list is not within the valid "
                                 "range [0, 52)")
        return tuple([ELLIPSIS if n is Ellipsis
                      else chr(ord("A") + n if n < 26 else ord("a") + n - 26) for n in labels])
    return (tuple([named(labels, f"operand {i}") for i, labels in enumerate(inputs)]),
            None if output is None else named(output, "output"), operands)


# ---- evaluation ---------------------------------------------------------------------------------


def _evaluate(inputs: Inputs, output: Labels | None, operands: Sequence[Tensor]) -> Tensor:
    arranged, products, (finish, final) = _plan(
        inputs, output, tuple([x._array.shape for x in operands]), _strategy(len(operands)))
    terms = []
    for x, calls in zip(operands, arranged):
        for call, given in calls:
            x = call(x, *given)
        terms.append(x)
    for i, j, product in products:
        second, first = terms.pop(max(i, j)), terms.pop(min(i, j))
        terms.append(product(second, first) if i > j else product(first, second))
    result, = terms
    return result if finish is None else finish(result, final)


@lru_cache(maxsize=512)
def _plan(given: Inputs, output_given: Labels | None, shapes: tuple[tuple[int, ...], ...],
          strategy: str | None) -> tuple[Any, Any, Any]:
    """All that follows from the equation and the shapes: for each operand the views that arrange
    it, which terms to multiply next and how, and what remains to be done at the end."""
    inputs, arranged = _number_ellipsis(given, shapes)
    output = _output_labels(inputs, output_given, _ellipsis_rank(given, shapes))
    shapes = tuple([_shape_after(calls, shape) for calls, shape in zip(arranged, shapes)])
    sizes = _label_sizes(inputs, shapes)
    order = [*output, *sorted(sizes.keys() - set(output), key=_label_order)]
    terms = []
    for calls, labels, shape in zip(arranged, inputs, shapes):
        calls += _align_labels(labels, order)
        terms.append(tuple([dict(zip(labels, shape)).get(label, 1) for label in order]))
    products = []
    for i, j in _contraction_order(inputs, output, sizes, strategy):
        second, first = terms.pop(max(i, j)), terms.pop(min(i, j))
        if i > j:
            first, second = second, first
        summed = [d for d in range(len(output), len(order)) if all(t[d] == 1 for t in terms)]
        product = _PairProduct(first, second, summed)
        products.append((i, j, product))
        terms.append(product.shape)
    finish: tuple[Any, Any] = (None, None)
    if len(order) != len(output):
        finish = (sum, tuple(range(len(output), len(order)))) if len(given) == 1 \
            else (view_as_shape, terms[0][:len(output)])
    return arranged, products, finish


def _ellipsis_rank(inputs: Inputs, shapes: Any) -> int:
    """How many dimensions the ellipsis stands for. Raise where an operand's rank does not fit."""
    wide = 0
    for i, (labels, shape) in enumerate(zip(inputs, shapes)):
        named, rank = len(labels) - (ELLIPSIS in labels), len(shape)
        if ELLIPSIS in labels:
            wide = max(wide, rank - named)
        if rank < named or (rank > named and ELLIPSIS not in labels):
            how = "is more than" if rank < named and ELLIPSIS in labels else "does not match"
            ending = "" if ELLIPSIS in labels else " and no ellipsis was given"
            raise RuntimeError(f"einsum(): the number of subscripts in the equation ({named}) "
                               f"{how} the number of dimensions ({rank}) for operand {i}{ending}")
    return wide


def _number_ellipsis(given: Inputs, shapes: Any) -> tuple[list[list[Any]], list[list[Any]]]:
    """The labels with the dimensions of an ellipsis as numbers, the last one 0; and the calls that
    give an operand those of them that it lacks."""
    wide, inputs, calls = _ellipsis_rank(given, shapes), [list(labels) for labels in given], []
    for labels, shape in zip(inputs, shapes):
        at = missing = 0
        if ELLIPSIS in labels:
            at, missing = labels.index(ELLIPSIS), wide - len(shape) + len(labels) - 1
            labels[at:at + 1] = range(wide - 1, -1, -1)
        calls.append([(unsqueeze_at, (at,))] * missing)
    return inputs, calls


def _shape_after(unsqueezes: list[Any], shape: tuple[int, ...]) -> tuple[int, ...]:
    for _, (at,) in unsqueezes:
        shape = (*shape[:at], 1, *shape[at:])
    return shape


def _label_order(label: Any) -> Any:
    """Of labels that are summed over: those of the ellipsis come first, then capitals."""
    return (0, -label) if isinstance(label, int) else (1, ord(label))


def _output_labels(inputs: list[list[Any]], output: Labels | None, wide: int) -> list[Any]:
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
        return [*output[:at], *range(wide - 1, -1, -1), *output[at + 1:]]
    return list(output)


def _label_sizes(inputs: list[list[Any]], shapes: Any) -> dict[Any, int]:
    """The extent of each label; 1 broadcasts."""
    sizes: dict[Any, int] = {}
    for i, (labels, shape) in enumerate(zip(inputs, shapes)):
        own: dict[Any, int] = {}
        for label, n in zip(labels, shape):
            if own.setdefault(label, n) != n:
                raise RuntimeError(f"einsum(): subscript {label} is repeated for operand {i} but "
                                   f"the sizes don't match, {n} != {own[label]}")
            known = sizes.get(label, 1)
            if known != n and known != 1 and n != 1:
                raise RuntimeError(f"einsum(): subscript {label} has size {n} for operand {i} "
                                   f"which does not broadcast with previously seen size {known}")
            sizes[label] = n if known == 1 else known
    return sizes


def _align_labels(labels: list[Any], order: list[Any]) -> list[Any]:
    """The calls that give a term one dimension for each label, in this order: of repeated labels
    the diagonal, in the place of the first; extent 1 for those that it lacks."""
    labels, calls = list(labels), []
    for label in [n for i, n in enumerate(labels) if n in labels[:i]]:
        at = labels.index(label)
        again = labels.index(label, at + 1)
        calls += [(diagonal, (0, at, again)), (movedim, (-1, at))]
        del labels[again]
    missing = range(len(labels), len(order))
    calls += [(unsqueeze_at, (n,)) for n in missing]
    places = iter(missing)
    return [*calls, (permute_to, (tuple([labels.index(n) if n in labels else next(places)
                                         for n in order]),))]


def _strategy(operands: int) -> str | None:
    """How opt_einsum is to look for an order of products, where it is there and has a choice."""
    if operands <= 2:
        return None
    from flambeau import backends  # which is built on ops
    settings = backends.opt_einsum
    return settings.strategy if settings.enabled and settings.is_available() else None


def _contraction_order(inputs: list[Any], output: list[Any], sizes: dict[Any, int],
                       strategy: str | None
                       ) -> list[tuple[int, int]]:
    """Which two terms to multiply next, each time; the product goes to the end."""
    count = len(inputs)
    if count <= 2:
        return [(0, 1)] * (count - 1)
    if strategy is None:
        return [(0, 1)] + [(n - 1, 0) for n in range(count - 1, 1, -1)]
    import opt_einsum
    names = {n: opt_einsum.get_symbol(i) for i, n in enumerate(sizes)}
    distinct = [list(dict.fromkeys(labels)) for labels in inputs]
    equation = ",".join("".join(names[n] for n in labels) for labels in distinct) + "->" \
        + "".join(names[n] for n in output)
    path = opt_einsum.contract_path(
        equation, *(tuple(sizes[n] for n in labels) for labels in distinct), shapes=True,
        optimize=strategy, memory_limit=None)[0]
    return [tuple(sorted(step)) for step in path if len(step) == 2]


class _PairProduct:
    """Two terms multiplied, and summed over some dimensions, whose extent becomes 1: one `bmm`,
    with the shared dimensions that stay in front, and those summed over inside."""

    def __init__(self, of_x: tuple[int, ...], of_y: tuple[int, ...], summed: list[int]) -> None:
        wide_x, wide_y = [[n != 1 for n in shape] for shape in (of_x, of_y)]
        self.alone = tuple([d for d in summed if wide_x[d] and not wide_y[d]])
        self.others = tuple([d for d in summed if wide_y[d] and not wide_x[d]])
        of_x, of_y = [tuple([1 if d in gone else n for d, n in enumerate(shape)])
                      for shape, gone in ((of_x, self.alone), (of_y, self.others))]
        inside = [d for d in summed if wide_x[d] and wide_y[d]]
        self.shape = tuple([1 if d in inside else m if n == 1 else n
                            for d, (m, n) in enumerate(zip(of_x, of_y))])
        self.inside = bool(inside)
        if not inside:
            return
        dims = [d for d in range(len(wide_x)) if d not in inside]
        batch = [d for d in dims if wide_x[d] and wide_y[d]]
        left = [d for d in dims if wide_x[d] and not wide_y[d] and d not in self.alone]
        right = [d for d in dims if d not in batch and d not in left]
        # where the product is in order the other way, the terms change places
        self.turned = bool(left and right and right[-1] < left[0])
        if self.turned:
            of_x, of_y, left, right = of_y, of_x, right, left
        n, rows, depth, columns = [prod([max(of_x[d], of_y[d]) if of_x[d] and of_y[d] else 0
                                         for d in group]) for group in (batch, left, inside, right)]
        self.dims_x, self.matrix_x = (*batch, *left, *inside, *right), (n, rows, depth)
        self.dims_y, self.matrix_y = (*batch, *inside, *right, *left), (n, depth, columns)
        self.made = (*[of_x[d] for d in (*batch, *left)], *[1] * len(inside),
                     *[of_y[d] for d in right])
        self.back = inverse(self.dims_x)

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        if self.alone:
            x = sum(x, self.alone, True)
        if self.others:
            y = sum(y, self.others, True)
        if not self.inside:
            return mul(x, y)
        if self.turned:
            x, y = y, x
        product = bmm(reshape_to(permute_to(x, self.dims_x), self.matrix_x),
                      reshape_to(permute_to(y, self.dims_y), self.matrix_y))
        return permute_to(view_as_shape(product, self.made), self.back)

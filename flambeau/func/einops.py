"""`rearrange`: dimensions named in a pattern, moved, split and joined."""
from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import flambeau
from flambeau import Tensor

Group = list[str]                       # the axes that one dimension is made of
ELLIPSIS = "..."
ALONE: Group = [ELLIPSIS, ELLIPSIS]     # an ellipsis that is not in parentheses


class DimensionBindError(Exception):
    """The sizes of a tensor do not fit a pattern."""


def rearrange(tensor: Tensor | Sequence[Tensor], pattern: str, **axes_lengths: int) -> Tensor:
    """The tensor with its dimensions as the right side of `pattern` puts those named on the left.

    Names in parentheses are one dimension that is split, or joined; `...` stands for all
    dimensions that are not named, `1` or `()` for one of extent 1. `axes_lengths` gives sizes that
    the tensor does not. A list of tensors is stacked first.

    >>> import flambeau
    >>> x = flambeau.arange(6)
    >>> rearrange(x, "(row column) -> column row", row=2)
    tensor([[0, 3],
            [1, 4],
            [2, 5]])
    """
    if not isinstance(tensor, Tensor):
        tensor = flambeau.stack(list(tensor))
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ValueError("Pattern must contain a single '->' separator")
    left, right = [_parse(side) for side in sides]
    _check(pattern, left, right, axes_lengths)
    left, right = _named_ellipsis(left, right, tensor.dim())
    if len(left) != tensor.dim():
        raise ValueError(f"Number of dimensions in pattern ({len(left)}) must be equal to the "
                         f"number of dimensions in the tensor ({tensor.dim()})")
    sizes = dict(axes_lengths)
    for group, n in zip(left, tensor.shape):
        _bind(group, n, sizes)
    before = [axis for group in left for axis in group]
    after = [axis for group in right for axis in group]
    split = tensor.reshape([sizes[axis] for axis in before])
    moved = split.permute([before.index(axis) for axis in after])
    return moved.reshape([math.prod([sizes[axis] for axis in group]) for group in right])


def _parse(side: str) -> list[Group]:
    """The groups of one side; an ellipsis is a group, or in one, like a name."""
    if "." in side.replace(ELLIPSIS, "", 1):
        several = "; only one ellipsis for tensor " if ELLIPSIS in side else ""
        raise ValueError(f"Expression may contain dots only inside ellipsis (...){several}")
    groups: list[Group] = []
    inside: Group | None = None
    for token in re.findall(r"\.\.\.|[()]|[^\s().]+", side):
        if token == "(":
            if inside is not None:
                raise ValueError("Axis composition is one-level (brackets inside brackets not "
                                 "allowed)")
            inside = []
        elif token == ")":
            if inside is None:
                raise ValueError("Brackets are not balanced")
            groups.append(inside)
            inside = None
        else:
            _check_name(token)
            axes = [] if token == "1" else [token]
            if inside is None:
                groups.append(ALONE if token == ELLIPSIS else axes)
            else:
                inside += axes
    if inside is not None:
        raise ValueError(f"Imbalanced parentheses in expression: '{side}'")
    names = [axis for group in groups if group is not ALONE for axis in group]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"Indexing expression contains duplicate dimension '{name}'")
    return groups


def _check_name(token: str) -> None:
    if token in (ELLIPSIS, "1"):
        return
    if token.isdecimal():
        raise ValueError("rearrange only supports unnamed axes of size 1")
    if not token.isidentifier() or token[0] == "_" or token[-1] == "_":
        why = "axis name should should not start or end with underscore" \
            if token.isidentifier() else "not a valid python identifier"
        raise ValueError(f"Invalid axis identifier: {token}\n{why}")


def _check(pattern: str, left: list[Group], right: list[Group], lengths: dict[str, int]) -> None:
    names, others = [{a for group in side for a in group} for side in (left, right)]
    if any(ELLIPSIS in group and group is not ALONE for group in left):
        raise ValueError("Ellipsis is parenthesis in the left side is not allowed: " + pattern)
    if names ^ others:
        raise ValueError("Identifiers only on one side of rearrange expression (should be on both)"
                         f": {names ^ others}")
    if unknown := set(lengths) - names:
        raise ValueError(f"Identifiers not found in rearrange expression: {unknown}")


def _named_ellipsis(left: list[Group], right: list[Group], ndim: int) -> Any:
    """Both sides with names of dimensions in place of the ellipsis."""
    if ALONE not in left:
        return left, right
    names = [f"...{i}" for i in range(ndim - len(left) + 1)]

    def spread(side: list[Group]) -> list[Group]:
        groups: list[Group] = []
        for group in side:
            if group is ALONE:
                groups += [[name] for name in names]
            else:
                groups.append([one for axis in group
                               for one in (names if axis == ELLIPSIS else [axis])])
        return groups
    return spread(left), spread(right)


def _bind(group: Group, size: int, sizes: dict[str, int]) -> None:
    """Find the size of the axis that a dimension leaves open."""
    unknown = [axis for axis in group if axis not in sizes]
    known = math.prod([sizes[axis] for axis in group if axis in sizes])
    if len(unknown) > 1:
        raise DimensionBindError("cannot infer the sizes of two dimensions at once "
                                 + " and ".join(unknown))
    if not unknown:
        if known != size:
            raise DimensionBindError(f"Dimension sizes to do not match ({size} != {known}) when "
                                     f"matching dimension pack {tuple(group)}")
        return
    if size % max(known, 1):
        raise DimensionBindError("inferred dimension does not evenly fit into larger dimension: "
                                 f"{size} vs {tuple(sizes.get(axis, '?') for axis in group)}")
    sizes[unknown[0]] = size // max(known, 1)


__all__ = ["rearrange"]

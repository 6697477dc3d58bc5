"""`rearrange`: dimensions by name, split, joined and in another order."""
from __future__ import annotations

import math
import re
from typing import Any

_TOKEN = re.compile(r"\.\.\.|[()]|[^\s()]+")


_REST = ("...",)              # the dimensions that are not named, each by itself


def _parse(expression: str) -> list[Any]:
    """A side of a pattern: for each dimension the names that it is made of."""
    groups: list[Any] = []
    inside = False
    for token in _TOKEN.findall(expression):
        if token in "()":
            if inside is (token == "("):
                raise ValueError(f"Imbalanced parentheses in expression: '{expression}'")
            inside = token == "("
            if inside:
                groups.append([])
            continue
        if token != "..." and token != "1" and not token.isidentifier():
            raise ValueError(f"Unknown character in expression '{expression}': '{token}' is not a "
                             "name")
        names = [] if token == "1" else [token]
        if inside:
            groups[-1] += names
        else:
            groups.append(_REST if token == "..." else names)
    if inside:
        raise ValueError(f"Imbalanced parentheses in expression: '{expression}'")
    flat = [name for group in groups for name in group]
    for name in flat:
        if flat.count(name) > 1:
            raise ValueError(f"Indexing expression contains duplicate dimension '{name}'")
    return groups


def rearrange(tensor: Any, pattern: str, **axes_lengths: int) -> Any:
    """A tensor with its dimensions as the right side of `pattern` says, named by the left.

    `(a b)` is one dimension made of two, `1` one of length 1, `...` all that are not named.
    Lengths that do not follow from the tensor are given by keyword. A list of tensors is stacked.

    >>> import flambeau
    >>> images = flambeau.zeros(8, 32, 30, 3)
    >>> rearrange(images, "b h w c -> b c h w").shape
    torch.Size([8, 3, 32, 30])
    >>> rearrange(images, "b (h n) ... -> (b n) h ...", n=2).shape
    torch.Size([16, 16, 30, 3])
    """
    import flambeau
    if not isinstance(tensor, flambeau.Tensor):
        tensor = flambeau.stack(list(tensor))
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ValueError("Pattern must contain exactly one '->' separator")
    left, right = (_parse(side) for side in sides)
    names_left, names_right = ({n for group in side for n in group} for side in (left, right))
    if names_left != names_right:
        raise ValueError("Identifiers only on one side of rearrange expression (should be on both):"
                         f" {names_left ^ names_right}")
    unknown = set(axes_lengths) - names_left
    if unknown:
        raise ValueError(f"Identifiers only in axes_lengths: {unknown}")
    rest = tensor.ndim - len(left) + 1
    if _REST in left:
        at = left.index(_REST)
        left[at:at + 1] = [[f".{i}"] for i in range(rest)]
    if len(left) != tensor.ndim:
        raise ValueError(f"Number of dimensions in pattern ({len(left)}) must be equal to the "
                         f"number of dimensions in the tensor ({tensor.ndim})")
    lengths: dict[str, int] = dict(axes_lengths)
    for group, size in zip(left, tensor.shape):
        free = [name for name in group if name not in lengths]
        known = math.prod(lengths[name] for name in group if name in lengths)
        if len(free) > 1:
            raise ValueError(f"the lengths of {free} do not follow from the tensor")
        if size % known if free else size != known:
            raise ValueError(f"inferred dimension does not evenly fit into larger dimension: "
                             f"{size} vs {tuple(lengths.get(name, '?') for name in group)}")
        if free:
            lengths[free[0]] = size // known
    order = [name for group in left for name in group]
    parts = tensor.reshape([lengths[name] for name in order])
    flat: list[str] = []
    shape: list[int] = []
    for group in right:
        made = [n for name in group for n in (
            [f".{i}" for i in range(rest)] if name == "..." else [name])]
        flat += made
        sizes = [lengths[name] for name in made]
        shape += sizes if group is _REST else [math.prod(sizes)]
    return parts.permute([order.index(name) for name in flat]).reshape(shape)


__all__ = ["rearrange"]

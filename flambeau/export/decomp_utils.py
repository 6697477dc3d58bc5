"""Tables of decompositions: how ops are made of fewer kinds of ops."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any


class CustomDecompTable(dict[Any, Callable[..., Any]]):
    """Overloads to functions that do the same in fewer kinds of ops.

    >>> import flambeau
    >>> table = CustomDecompTable()
    >>> flambeau.ops.aten.linear.default in table
    True
    """

    def __init__(self) -> None:
        from flambeau.export._decompose import core_decompositions
        super().__init__(core_decompositions())

    def __getitem__(self, key: Any) -> Callable[..., Any]:
        return super().__getitem__(key)

    def __iter__(self) -> Any:
        return super().__iter__()

    def __len__(self) -> int:
        return super().__len__()

    def keys(self) -> Any:
        """The overloads."""
        return super().keys()

    def items(self) -> Any:
        """The overloads with their functions."""
        return super().items()

    def pop(self, *args: Any) -> Any:
        """Remove an overload, which stays as it is when programs are decomposed."""
        return super().pop(*args)

    def update(self, other_dict: Any) -> None:
        """Take over the functions of another table."""
        super().update(other_dict)

    def copy(self) -> CustomDecompTable:
        """A copy."""
        made = CustomDecompTable.__new__(CustomDecompTable)
        dict.update(made, self)
        return made

    def materialize(self) -> dict[Any, Callable[..., Any]]:
        """A plain dict of what is in it."""
        return dict(self)


def default_decompositions() -> CustomDecompTable:
    """The decompositions that `ExportedProgram.run_decompositions` uses unless told otherwise.

    >>> import flambeau as torch
    >>> table = default_decompositions()
    >>> _ = table.pop(torch.ops.aten.linear.default)
    >>> program = torch.export.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),))
    >>> print(program.run_decompositions(table).graph.find_nodes(op="call_function",
    ...       target=torch.ops.aten.linear.default))
    [linear]
    """
    return CustomDecompTable()


__all__ = ["CustomDecompTable"]

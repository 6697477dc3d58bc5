"""The named tuples of functions that give several results.

>>> import flambeau
>>> flambeau.tensor([[1.0, 3.0], [2.0, 0.0]]).max(dim=1)
torch.return_types.max(
values=tensor([3., 2.]),
indices=tensor([1, 0]))
"""
from __future__ import annotations

from functools import cache
from typing import Any

from flambeau.core.op import table
from flambeau.core.return_types import ReturnType, declare


@cache
def _declared() -> dict[str, str]:
    """The names of results, of all public functions whose schemas have them."""
    from flambeau.ops import load
    load()
    found = {"_unpack_dual": "primal tangent"}
    for op in table.values():
        schema = op.schema
        if schema is None or len(schema.results) < 2 or not op.declaration.function \
                or not all(schema.result_names):
            continue
        found[op.name] = " ".join(schema.result_names)
        if op.name[0] != "_" and not any(result.is_list for result in schema.results):
            found[f"{op.name}_out"] = found[op.name]
    return found


def pytree_register_structseq(cls: type) -> None:
    """Let `flambeau.utils._pytree` take the named tuples `cls` apart, as it does all those here.

    Raises:
        ValueError: it does so already.
    """
    from flambeau.utils._pytree import register_pytree_node
    register_pytree_node(cls, lambda results: (list(results), None),
                         lambda values, context: cls(values))


def __getattr__(name: str) -> Any:
    """Each class is made when it is first asked for."""
    if name == "all_return_types":
        return [declare(known, fields) for known, fields in sorted(_declared().items())
                if known[0] != "_"]
    if name == "__all__":
        return ["all_return_types", "pytree_register_structseq",
                *(known for known in sorted(_declared()) if known[0] != "_")]
    if name[:2] != "__":
        if name in _declared():
            return declare(name, _declared()[name])
        for private in ReturnType.__subclasses__():
            if private.__name__ == name:
                return private
    raise AttributeError(f"module 'flambeau.return_types' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_declared()})

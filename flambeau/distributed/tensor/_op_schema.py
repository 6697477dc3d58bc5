"""A call of an op on distributed tensors, and how it is carried out."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from flambeau.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from flambeau.distributed.tensor.placement_types import Placement
from flambeau.utils._pytree import tree_flatten, tree_unflatten

Placements = tuple[Placement, ...]
# What an op may do on one dimension of a mesh: a placement of each output, and of each input.
Strategy = tuple[Sequence[Placement | None], Sequence[Placement | None]]


@dataclass
class OpSchema:
    """An op with its arguments, in which a `DTensorSpec` stands for each tensor."""

    op: Any
    args_schema: tuple[Any, ...]
    kwargs_schema: dict[str, Any]
    leaves: list[Any] | None = None             # of both, and how they are arranged, where known
    structure: Any = None
    specs: list[DTensorSpec] = field(init=False)

    def __post_init__(self) -> None:
        if self.leaves is None:
            self.leaves, self.structure = tree_flatten((self.args_schema, self.kwargs_schema))
        self.specs = [leaf for leaf in self.leaves if type(leaf) is DTensorSpec]

    @property
    def name(self) -> str:
        """The name of the op, the same for its form in place."""
        name = self.op.overloadpacket.__name__
        return name[:-1] if self.is_inplace_op() else name

    @property
    def mesh(self) -> Any:
        """The mesh of the tensors."""
        return self.specs[0].mesh

    def get_mesh_from_args(self, validate: bool = True) -> Any:
        """The mesh of the tensors."""
        return self.mesh

    def argument(self, at: int, name: str, default: Any = None) -> Any:
        """An argument, given by its place or its name."""
        if at < len(self.args_schema):
            return self.args_schema[at]
        return self.kwargs_schema.get(name, default)

    def is_inplace_op(self) -> bool:
        """Does the op write into its first argument?"""
        name = self.op.overloadpacket.__name__
        return name[-1] == "_" and name[:2] != "__"

    def is_out_variant_op(self) -> bool:
        """Does the op write into an argument `out`?"""
        return "out" in self.kwargs_schema

    def key(self) -> Any:
        """What the way of carrying it out depends on; None if it cannot be looked up."""
        leaves = tuple(self.leaves)
        found = (self.op, leaves, tuple(map(type, leaves)), self.structure)
        try:
            hash(found)
        except TypeError:
            return None
        return found

    def with_tensors(self, tensors: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with tensors in place of the specs."""
        following = iter(tensors)
        return tree_unflatten([next(following) if type(leaf) is DTensorSpec else leaf
                               for leaf in self.leaves], self.structure)

    def __str__(self) -> str:
        parts = [str(s) for s in self.specs]
        return f"{self.op}({', '.join(parts)})"


@dataclass
class OutputSharding:
    """How a call is carried out: the placements that its inputs are brought into, those that its
    outputs have, and what runs on the local tensors.

    outputs     placements of all outputs, or a list with those of each
    run         in place of the op, `run(*local_args, **local_kwargs)`
    local       changes the arguments of the local call: `local(args, kwargs, metas)`, where
                `metas` says what the whole outputs are like
    """

    inputs: list[Placements]
    outputs: Placements | list[Placements | None]
    run: Callable[..., Any] | None = None
    local: Callable[..., Any] | None = None
    metas: list[TensorMeta | None] | None = None

    def output(self, index: int) -> Placements | None:
        """The placements of one output."""
        return self.outputs[index] if isinstance(self.outputs, list) else self.outputs


@dataclass
class RuntimeSchemaInfo:
    """Which arguments of an op decide how it is carried out: all of them do here."""
    static_argnum: int = 100
    static_kwargkey: list[str] | None = None
    needs_pytree: bool = False

"""Ops on distributed tensors: each process runs the op on its piece."""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import flambeau
from flambeau._ops import aten
from flambeau.core.autograd.graph import current_pass
from flambeau.core.tensor import Tensor
from flambeau.dispatch.aten.subclass import public_arguments
from flambeau.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from flambeau.distributed.tensor._op_schema import OpSchema, OutputSharding
from flambeau.distributed.tensor._redistribute import redistribute_local_tensor
from flambeau.distributed.tensor._sharding_prop import ShardingPropagator
from flambeau.distributed.tensor._utils import ExplicitRedistributionContext
from flambeau.distributed.tensor.placement_types import Replicate
from flambeau.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten


class OpDispatcher:
    """Brings the inputs of an op into the placements that it needs, runs it on the local tensors,
    and makes distributed tensors of what it gives."""

    def __init__(self) -> None:
        self.sharding_propagator = ShardingPropagator()
        self._allow_implicit_replication = False
        self._custom_op_handlers: dict[Any, Callable[..., Any]] = {
            "aten::equal": equal_handler, "aten::is_same_size": is_same_size_handler,
            "aten::is_pinned": is_pinned_handler, "aten::as_strided": as_strided_handler,
            "aten::_local_scalar_dense": item_handler}

    def dispatch(self, op_call: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run an op."""
        handlers = self._custom_op_handlers
        handler = handlers.get(op_call) or handlers.get(op_call.name())
        if handler is not None:
            return handler(op_call, args, kwargs)
        return self.dispatch_by_rule(op_call, args, kwargs)

    def dispatch_by_rule(self, op_call: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run an op by its rule, whatever else may be known of it."""
        schema, tensors = self.unwrap(op_call, args, kwargs)
        plan = self.sharding_propagator.propagate(schema)
        if schema.mesh.get_coordinate() is None:
            return self._elsewhere(schema, plan, args)
        local = self._placed(schema, plan, tensors)
        local_args, local_kwargs = schema.with_tensors(local)
        if plan.local is not None:
            local_args, local_kwargs = plan.local(local_args, local_kwargs, plan.metas)
        found = (plan.run or op_call)(*local_args, **local_kwargs)
        if schema.is_inplace_op():
            return args[0]
        if schema.is_out_variant_op():
            return kwargs["out"]
        return self.wrap(found, plan, schema.mesh)

    def unwrap(self, op_call: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
               ) -> tuple[OpSchema, list[Tensor]]:
        """A call with specs in place of its tensors, and the local tensors."""
        from flambeau.distributed.tensor._api import DTensor
        leaves, structure = tree_flatten((args, kwargs))
        mesh = next(leaf._spec.mesh for leaf in leaves if isinstance(leaf, DTensor))
        tensors = []
        for i, leaf in enumerate(leaves):
            if isinstance(leaf, DTensor):
                if leaf._spec.mesh != mesh:
                    raise RuntimeError(f"Cannot run {op_call} on inputs with different meshes: got "
                                       f"{mesh} and {leaf._spec.mesh}")
                leaves[i] = leaf._spec
                tensors.append(leaf._local_tensor)
            elif isinstance(leaf, Tensor):
                leaves[i] = self._replicated(op_call, leaf, mesh)
                tensors.append(leaf)
        args, kwargs = tree_unflatten(leaves, structure)
        return OpSchema(op_call, args, kwargs, leaves, structure), tensors

    def _replicated(self, op_call: Any, tensor: Tensor, mesh: Any) -> DTensorSpec:
        """The spec of a tensor that all processes have: one number, what an op has made on its
        way, or what is allowed."""
        if tensor.numel() != 1 and not self._allow_implicit_replication and _is_of_user(tensor):
            raise RuntimeError(f"{op_call} got mixed torch.Tensor and DTensor, need to convert all "
                               "torch.Tensor to DTensor before calling distributed operators!")
        return DTensorSpec(mesh, (Replicate(),) * mesh.ndim, meta_of(tensor))

    def _placed(self, schema: OpSchema, plan: OutputSharding, tensors: list[Tensor]
                ) -> list[Tensor]:
        """The local tensors in the placements that the op needs."""
        found = []
        for spec, tensor, wanted in zip(schema.specs, tensors, plan.inputs):
            if spec.placements != wanted:
                target = DTensorSpec(spec.mesh, wanted, spec.tensor_meta)
                ExplicitRedistributionContext.observe_redistribution(spec, target,
                                                                     f" for {schema.op}")
                tensor = redistribute_local_tensor(tensor, spec, target)
            found.append(tensor)
        return found

    @staticmethod
    def wrap(found: Any, plan: OutputSharding, mesh: Any) -> Any:
        """Distributed tensors of what an op has given."""
        from flambeau.distributed.tensor._api import DTensor
        count = -1

        def wrapped(value: Any) -> Any:
            nonlocal count
            count += 1
            if not isinstance(value, Tensor):
                return value
            placements = plan.output(count)
            if placements is None:
                return value
            meta = None if plan.metas is None else plan.metas[count]
            return DTensor(value, DTensorSpec(mesh, placements, meta or meta_of(value)),
                           requires_grad=False)
        if isinstance(found, Tensor):
            return wrapped(found)
        return tree_map(wrapped, found, is_leaf=lambda value: value is None)

    def _elsewhere(self, schema: OpSchema, plan: OutputSharding, args: tuple[Any, ...]) -> Any:
        """What a process gets that is not in the mesh: empty pieces."""
        if schema.is_inplace_op():
            return args[0]
        from flambeau.distributed.tensor._api import DTensor
        if plan.metas is None:
            from flambeau.distributed.tensor._sharding_prop import output_metas
            plan.metas = output_metas(schema)
        found = [None if meta is None else DTensor(
            flambeau.empty(0, dtype=meta.dtype),
            DTensorSpec(schema.mesh, plan.output(i), meta), requires_grad=False)
            for i, meta in enumerate(plan.metas)]
        return found[0] if len(found) == 1 else tuple(found)


def _is_of_user(tensor: Tensor) -> bool:
    """Is a plain tensor an argument of the call that runs, not something made inside?"""
    if current_pass.get() is not None:
        return False                    # a derivative
    given = public_arguments.get()
    return given is None or any(leaf is tensor for leaf in tree_leaves(given))


def meta_of(tensor: Tensor) -> TensorMeta:
    """What a tensor is like."""
    return TensorMeta(tensor.shape, tensor.stride(), tensor.dtype)


@contextlib.contextmanager
def implicit_replication(dispatcher: OpDispatcher) -> Iterator[None]:
    """Inside, plain tensors in an op with distributed ones count as replicated."""
    before = dispatcher._allow_implicit_replication
    dispatcher._allow_implicit_replication = True
    try:
        yield
    finally:
        dispatcher._allow_implicit_replication = before


# ---- ops that are not run piece by piece --------------------------------------------------------

def equal_handler(op_call: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Are all pieces equal, in all processes?"""
    from flambeau.distributed.tensor._api import DTensor
    first, second = args
    if not (isinstance(first, DTensor) and isinstance(second, DTensor)):
        return bool(op_call(*[a.full_tensor() if isinstance(a, DTensor) else a for a in args]))
    if first.shape != second.shape:
        return False
    if first.placements != second.placements or any(p.is_partial() for p in first.placements):
        first, second = [t.redistribute(placements=[Replicate()] * t.device_mesh.ndim)
                         for t in (first, second)]
    same = flambeau.tensor(int(op_call(first._local_tensor, second._local_tensor)))
    from flambeau.distributed import _functional_collectives as funcol
    for i, placement in enumerate(first.placements):
        if not placement.is_replicate():
            same = funcol.all_reduce(same, "min", (first.device_mesh, i))
    return bool(same)


def item_handler(op_call: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The number of a tensor of one element."""
    return op_call(args[0].full_tensor())


def is_same_size_handler(op_call: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Have two tensors one shape?"""
    return args[0].shape == args[1].shape


def is_pinned_handler(op_call: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Is the local tensor in pinned memory?"""
    return args[0]._local_tensor.is_pinned()


def as_strided_handler(op_call: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The tensor itself; other ways to look at the memory of pieces there are not."""
    tensor, size, stride = args[:3]
    offset = args[3] if len(args) > 3 else kwargs.get("storage_offset")
    if tuple(tensor.size()) == tuple(size) and tuple(tensor.stride()) == tuple(stride) \
            and offset in (None, tensor.storage_offset()):
        return aten.alias.default(tensor)
    raise RuntimeError("as_strided not supported with DTensor")

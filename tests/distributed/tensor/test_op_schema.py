"""A call of an op on distributed tensors, and how it is carried out."""
import pytest
from tensor_cases import R, imagined, spec

import flambeau as torch
from flambeau.distributed.tensor import Shard
from flambeau.distributed.tensor._op_schema import OpSchema, OutputSharding, RuntimeSchemaInfo

aten = torch.ops.aten


@pytest.fixture
def mesh():
    with imagined(2) as found:
        yield found


def test_arguments(mesh):
    x, y = spec(mesh, (4, 2), Shard(0)), spec(mesh, (2,), R)
    schema = OpSchema(aten.add.Tensor, (x, y), {"alpha": 2})
    assert schema.specs == [x, y] and schema.mesh is mesh is schema.get_mesh_from_args()
    assert schema.argument(1, "other") is y and schema.argument(2, "alpha", 1) == 2
    assert schema.argument(3, "zz", "default") == "default"
    args, kwargs = schema.with_tensors(["a", "b"])
    assert args == ("a", "b") and kwargs == {"alpha": 2}
    assert str(schema) == f"aten.add.Tensor({x}, {y})"


@pytest.mark.parametrize(("op", "name", "in_place", "out"), [
    ("add.Tensor", "add", False, False), ("add_.Tensor", "add", True, False),
    ("add.out", "add", False, True), ("__and__.Tensor", "__and__", False, False)])
def test_kinds_of_ops(mesh, op, name, in_place, out):
    packet, overload = op.split(".")
    x = spec(mesh, (4,), R)
    schema = OpSchema(getattr(getattr(aten, packet), overload), (x, x), {"out": x} if out else {})
    assert schema.name == name
    assert (schema.is_inplace_op(), schema.is_out_variant_op()) == (in_place, out)


def test_what_is_looked_up(mesh):
    def key(*args, **kwargs):
        return OpSchema(aten.sum.dim_IntList, args, kwargs).key()
    x = spec(mesh, (4, 2), Shard(0))
    assert key(x, [0]) == key(spec(mesh, (4, 2), Shard(0)), [0])
    assert key(x, [0]) != key(x, [1]) != key(x, [1], keepdim=True)
    assert key(x, 1) != key(x, True) != key(x, 1.0)             # equal numbers of other types
    assert key(spec(mesh, (4, 2), R), [0]) != key(x, [0])
    assert key(x, torch.Generator()) is None or hash(key(x, [0]))


def test_placements_of_outputs():
    same = OutputSharding([(R,)], (Shard(0),))
    assert same.output(0) == same.output(1) == (Shard(0),)
    each = OutputSharding([(R,)], [(R,), None])
    assert each.output(0) == (R,) and each.output(1) is None
    info = RuntimeSchemaInfo(1, ["dim"], needs_pytree=True)
    assert (info.static_argnum, info.static_kwargkey, info.needs_pytree) == (1, ["dim"], True)

"""`Shown`: ops that modes below autograd see as another overload than their own schema."""
import pytest

import flambeau as torch
from flambeau.core.op import table
from flambeau.ops import load
from flambeau.schema.parser import parse
from flambeau.utils._python_dispatch import TorchDispatchMode


class Seen(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


def test_schemas_are_overloads_of_pytorch():
    load()
    for op in table.values():
        if op.declaration is not None:
            for shown in op.declaration.aten:
                schema = parse(shown.schema)
                packet = getattr(torch.ops.aten, schema.name)
                assert schema.overload in ("", *packet.overloads()), shown.schema


@pytest.mark.parametrize("call, names", [
    (lambda x: x[1], ["aten.select.int"]),
    (lambda x: x[:, 1:2], ["aten.slice.Tensor"]),
    (lambda x: x[None], ["aten.unsqueeze.default"]),
    (lambda x: x.sigmoid(), ["aten.sigmoid.default"]),
    (lambda x: x.T, ["aten.permute.default"]),
])
def test_what_modes_see(call, names):
    x = torch.arange(6.0).view(2, 3)
    with Seen() as mode:
        found = call(x)
    assert mode.names == names and torch.equal(found, call(x))

"""The ops of a library: kernels by key, overloads, what comes before autograd."""
import pytest

import flambeau as torch

X = torch.tensor([1.0, 2.0])


@pytest.fixture
def library():
    with torch.library._scoped_library("mirror_operators", "FRAGMENT") as found:
        yield found


def test_the_kernel_of_the_key(library):
    library.define("keyed(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError, match=r"mirror_operators::keyed"):
        torch.ops.mirror_operators.keyed(X)
    library.impl("keyed", lambda x: x + 1, "CPU")
    library.impl("keyed", lambda x: x.new_empty(5), "Meta")
    assert torch.ops.mirror_operators.keyed(X).tolist() == [2, 3]
    assert torch.ops.mirror_operators.keyed(X.to("meta")).shape == (5,)


def test_made_of_other_ops(library):
    library.define("made(Tensor x) -> Tensor")
    library.impl("made", lambda x: (x * x).sum(), "CompositeImplicitAutograd")
    x = X.clone().requires_grad_()
    torch.ops.mirror_operators.made(x).backward()
    assert x.grad.tolist() == [2, 4]


def test_overloads(library):
    library.define("over.a(Tensor x) -> Tensor")
    library.define("over.b(Tensor x, int n) -> Tensor")
    library.impl("over.a", lambda x: x, "CompositeExplicitAutograd")
    library.impl("over.b", lambda x, n: x * n, "CompositeExplicitAutograd")
    packet = torch.ops.mirror_operators.over
    assert sorted(packet.overloads()) == ["a", "b"]
    assert packet(X, 3).tolist() == packet.b(X, 3).tolist() == [3, 6]
    assert str(packet.b) == "mirror_operators.over.b"
    assert packet.b.name() == "mirror_operators::over.b"
    with pytest.raises(AttributeError, match="has no overload name 'c'"):
        packet.c


def test_what_is_written_to_counts_its_writes(library):
    library.define("write(Tensor(a!) x) -> ()")
    library.impl("write", lambda x: (x.add_(1), None)[1], "CompositeExplicitAutograd")
    x = X.clone()
    before = x._version
    assert torch.ops.mirror_operators.write(x) is None
    assert x.tolist() == [2, 3] and x._version > before
    assert torch.ops.mirror_operators.write.default._schema.is_mutable


@pytest.mark.parametrize(("schema", "message"), [
    ("broken(Tensor x", "expected"), ("f(Nothing x) -> Tensor", "unknown type specifier"),
])
def test_schemas_that_cannot_be_read(library, schema, message):
    with pytest.raises(RuntimeError, match=message):
        library.define(schema)

"""Parts that a backend can run become modules, and the program computes what it did."""
import pytest

import flambeau as torch
from flambeau.fx import symbolic_trace
from flambeau.fx.passes.infra.partitioner import CapabilityBasedPartitioner, Partition
from flambeau.fx.passes.operator_support import OperatorSupport


class Arithmetic(OperatorSupport):
    def is_node_supported(self, submodules, node):
        return node.op == "call_function" and node.target.__name__ in ("add", "mul", "getitem")


def chain(a, b, c):
    y = (a + b) * c
    z = torch.relu(y)
    u = torch.sin((z + a) * b)
    return u + z, y


def of_parts(a, b, c):
    part = torch.split(a, 1)[0]
    x = part + b
    return torch.relu(x) + part * x


def around(a, b, c):
    y = torch.sigmoid(c)
    k = (y * 2 + (a + b)) * 3
    return torch.tanh(k) * (a + b) + y


def several(a, b, c):
    x, y = a + b, a * b
    return torch.relu(x), torch.relu(y), x * y, y + 1


# What PyTorch 2.13 proposes, with partitions of one node and without.
PROPOSED = {
    chain: ([(2, ["add_1", "mul_1"]), (4, ["add", "mul"])], [(0, ["add_2"])]),
    of_parts: ([(1, ["mul", "add_1"])], [(3, ["add"])]),
    several: ([(1, ["add", "mul", "mul_1", "add_1"])], []),
}


def named(partitions):
    return [(p.id, [node.name for node in p.nodes]) for p in partitions]


@pytest.mark.parametrize("program", PROPOSED)
def test_proposed_partitions(program):
    large, small = PROPOSED[program]
    found = CapabilityBasedPartitioner(symbolic_trace(program), Arithmetic()).propose_partitions()
    assert named(found) == large
    found = CapabilityBasedPartitioner(symbolic_trace(program), Arithmetic(),
                                       allows_single_node_partition=True).propose_partitions()
    assert sorted(named(found)) == sorted(large + small)


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("program", [chain, of_parts, around, several])
def test_fused_programs_compute_the_same(program, single):
    partitioner = CapabilityBasedPartitioner(symbolic_trace(program), Arithmetic(),
                                             allows_single_node_partition=single)
    fused = partitioner.partition_and_fuse()
    assert any(name.startswith("fused_") for name, _ in fused.named_children())
    inputs = [torch.rand(2, 2) for _ in range(3)]
    expected, found = program(*inputs), fused(*inputs)
    for e, f in zip(*[r if isinstance(r, tuple) else (r,) for r in (expected, found)]):
        assert torch.equal(e, f)


def test_an_op_may_be_a_partition_by_itself():
    def program(a, b):
        return torch.relu(a) + b
    partitioner = CapabilityBasedPartitioner(
        symbolic_trace(program), Arithmetic(), allowed_single_node_partition_ops=["_operator.add"])
    assert named(partitioner.propose_partitions()) == [(0, ["add"])]
    idle = CapabilityBasedPartitioner(symbolic_trace(chain), Arithmetic(),
                                      non_compute_ops=["_operator.mul"])
    assert idle.propose_partitions() == []


def test_ends_that_compute_nothing_are_left_out():
    graph = symbolic_trace(chain)
    partitioner = CapabilityBasedPartitioner(graph, Arithmetic(),
                                             non_compute_ops=["_operator.mul"])
    nodes = {node.name: node for node in graph.graph.nodes}
    partition = Partition(0, [nodes["add"], nodes["mul"]])
    partitioner.remove_bookend_non_compute_ops([partition])
    assert list(partition.nodes) == [nodes["add"]] and partition.size() == 1
    assert nodes["output"] in partitioner.dependency_viewer.downstreams_of(nodes["add"])

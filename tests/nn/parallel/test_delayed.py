"""Gradients that travel together when that of one parameter comes."""
import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau import nn
from flambeau.nn.parallel._delayed import DelayedSharing


@pytest.fixture
def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


def test_gradients_are_shared_at_the_end_of_the_pass(group, network, monkeypatch):
    asked = []
    monkeypatch.setattr(dist.distributed_c10d, "all_reduce", lambda flat, **options: (
        asked.append(flat.numel()), dist.all_reduce(flat, **options))[1])
    parameters = list(network.parameters())
    wanted = [False]
    # the last layer's gradients come first, so all but the trigger's are there
    sharing = DelayedSharing(parameters[2:], network[0].weight, group, lambda: wanted[0], True,
                             1 << 20)
    x = torch.arange(6.0).view(2, 3)
    network(x).pow(2).mean().backward()
    plain = [p.grad.clone() for p in parameters]
    assert not asked
    wanted[0] = True
    network.zero_grad()
    network(x).pow(2).mean().backward()
    assert asked == [4 * 2 + 2]
    for p, grad in zip(parameters, plain):
        torch.testing.assert_close(p.grad, grad)
    for handle in sharing.handles:
        handle.remove()
    network(x).sum().backward()
    assert len(asked) == 1


def test_a_parameter_without_gradient_counts_as_zero(group, network):
    left_out = nn.Parameter(torch.ones(2))
    DelayedSharing([left_out, *network[2].parameters()], network[2].bias, group, lambda: True,
                   False, 1 << 20)
    network(torch.ones(1, 3)).sum().backward()
    assert left_out.grad.tolist() == [0.0, 0.0]
    assert network[2].bias.grad.tolist() == [1.0, 1.0]


def test_all_processes_begin_with_the_same_parameters(group, network):
    shared = nn.parallel.DistributedDataParallel(
        network, delay_all_reduce_named_params=list(network.named_parameters())[:2],
        param_to_hook_all_reduce=network[0].weight)
    assert len(shared._module_parameters) == 2
    shared(torch.ones(1, 3)).sum().backward()
    assert all(p.grad is not None for p in network.parameters())

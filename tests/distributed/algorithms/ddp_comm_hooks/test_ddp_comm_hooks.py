"""Hooks that share gradients; PowerSGD's values are those of PyTorch 2.13 with two processes."""
from __future__ import annotations

import pickle

import pytest
from hook_cases import flat, gradients, network

import flambeau as torch
from flambeau import distributed as dist
from flambeau import nn
from flambeau.distributed.algorithms import ddp_comm_hooks
from flambeau.distributed.algorithms._comm_hooks import default_hooks as fsdp_hooks
from flambeau.distributed.algorithms._quantization.quantization import DQuantType, auto_quantize
from flambeau.distributed.algorithms.ddp_comm_hooks import debugging_hooks, default_hooks
from flambeau.distributed.algorithms.ddp_comm_hooks import post_localSGD_hook as post_local
from flambeau.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power
from flambeau.nn.parallel import DistributedDataParallel as DDP


def simple_hooks(rank):
    mean = gradients(rank)
    compressed = default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook)
    for hook, tolerance in ((default_hooks.allreduce_hook, 0),
                            (default_hooks.fp16_compress_hook, 1e-3),
                            (default_hooks.bf16_compress_hook, 1e-2), (compressed, 1e-3)):
        torch.testing.assert_close(gradients(rank, hook), mean, atol=tolerance, rtol=tolerance)
    own = gradients(rank, debugging_hooks.noop_hook)
    assert not torch.allclose(own, mean, atol=1e-2)
    small = gradients(rank, default_hooks.allreduce_hook, bucket_cap_mb=1e-5)
    torch.testing.assert_close(small, mean)
    for kind in ddp_comm_hooks.DDPCommHookType:
        model = DDP(network())
        ddp_comm_hooks.register_ddp_comm_hook(kind, model)
        model(torch.arange(24.0).view(4, 6) / 10 + rank).pow(2).sum().backward()
        if kind.name != "NOOP":
            torch.testing.assert_close(flat(model), mean, atol=3e-2, rtol=1e-2)


def power_sgd(rank):
    options = {"matrix_approximation_rank": 1, "start_powerSGD_iter": 2}
    state = power.PowerSGDState(None, min_compression_rate=0.5, **options)
    found = gradients(rank, power.powerSGD_hook, state, steps=4)
    wanted = torch.tensor([0.07915, 0.0849, 0.09064, 0.09638, 0.10213, 0.10787, -0.40127, -0.43039])
    torch.testing.assert_close(found[:8], wanted, atol=1e-4, rtol=0)
    torch.testing.assert_close(found[-2:], torch.tensor([-0.73146, 1.9242]), atol=1e-4, rtol=0)
    assert state.compression_stats() == (170 / 92, 170, 92) and state.iter == 4
    torch.testing.assert_close(
        state.error_dict[0][:2], torch.tensor([[0.15555, -0.63966], [-0.15555, 0.63966]][rank]),
        atol=1e-4, rtol=0)
    again = pickle.loads(pickle.dumps(state))
    assert again.iter == 4 and again.process_group is dist.group.WORLD
    batched = power.PowerSGDState(None, min_compression_rate=0.5,
                                  batch_tensors_with_same_shape=True, **options)
    torch.testing.assert_close(gradients(rank, power.powerSGD_hook, batched, steps=4), found)
    cold = power.PowerSGDState(None, min_compression_rate=0.5, warm_start=False, **options)
    torch.testing.assert_close(
        gradients(rank, power.powerSGD_hook, cold, steps=4)[:3],
        torch.tensor([0.09209, 0.09888, 0.10568]), atol=1e-4, rtol=0)
    whole = power.PowerSGDState(None, matrix_approximation_rank=10, start_powerSGD_iter=2)
    torch.testing.assert_close(gradients(rank, power.batched_powerSGD_hook, whole, steps=4),
                               gradients(rank), atol=1e-4, rtol=1e-4)     # full rank: exact


def matrices_of_one_shape_apart(rank):
    """Random factors are drawn shape by shape, also where matrices are not batched."""
    for batched in (False, True):
        torch.manual_seed(0)
        sizes = (6, 6, 5, 6, 6)
        layers = [m for a, b in zip(sizes, sizes[1:]) for m in (nn.Linear(a, b), nn.Tanh())]
        model = DDP(nn.Sequential(*layers[:-1]))
        state = power.PowerSGDState(None, start_powerSGD_iter=2, min_compression_rate=0.5,
                                    batch_tensors_with_same_shape=batched)
        model.register_comm_hook(state, power.powerSGD_hook)
        x = torch.arange(24.0).view(4, 6) / 10 + rank
        for _ in range(4):
            model.zero_grad()
            model(x).pow(2).sum().backward()
        found = torch.stack([model.module[i].weight.grad[0, :3] for i in (0, 2, 4, 6)])
        wanted = torch.tensor([[-0.13847, -0.14993, -0.16139], [-0.13114, 0.09168, -0.04333],
                               [0.6077, -0.61562, -0.20757], [0.51897, 1.9958, -1.73089]])
        torch.testing.assert_close(found, wanted, atol=1e-4, rtol=0)


def local_and_overlapped(rank):
    every = [dist.new_group([0]), dist.new_group([1])]
    state = post_local.PostLocalSGDState(None, every[rank], 1)
    own = gradients(rank, debugging_hooks.noop_hook)
    torch.testing.assert_close(gradients(rank, post_local.post_localSGD_hook, state, steps=2), own)
    model = DDP(network())
    model._register_fused_optim(torch.optim.SGD, lr=0.1)
    before = [p.detach().clone() for p in model.parameters()]
    model(torch.arange(24.0).view(4, 6) / 10 + rank).pow(2).sum().backward()
    for p, old in zip(model.parameters(), before):
        torch.testing.assert_close(p, old - 0.1 * p.grad)


def quantized_and_low_precision(rank):
    outputs = [torch.zeros(2, 2), torch.zeros(2, 2)]
    for kind in DQuantType:
        auto_quantize(dist.all_gather, kind)(outputs, torch.full((2, 2), 1 / 3 + rank))
        torch.testing.assert_close(outputs[1], torch.full((2, 2), 4 / 3), atol=1e-2, rtol=1e-2)
    low = fsdp_hooks.LowPrecisionState(dist.group.WORLD)
    whole, part = torch.arange(4.0) + rank, torch.zeros(2)
    fsdp_hooks.reduce_scatter_hook(fsdp_hooks.DefaultState(dist.group.WORLD), whole.clone(), part)
    assert part.tolist() == [[0.5, 1.5], [2.5, 3.5]][rank]
    fsdp_hooks.bf16_compress_hook(low, whole.clone(), part)
    assert part.tolist() == [[0.5, 1.5], [2.5, 3.5]][rank] and part.dtype is torch.float32
    fsdp_hooks.fp16_compress_hook(low, whole)
    assert whole.tolist() == [0.5, 1.5, 2.5, 3.5]


def everything(rank):
    simple_hooks(rank)
    power_sgd(rank)
    matrices_of_one_shape_apart(rank)
    local_and_overlapped(rank)
    quantized_and_low_precision(rank)


def test_two_processes(processes):
    processes(everything)


def test_what_hooks_must_be(alone):
    model = DDP(nn.Linear(2, 1))
    with pytest.raises(TypeError, match="Communication hook must be callable"):
        model.register_comm_hook(None, 3)

    def typed(state: int, bucket: int) -> None: ...
    with pytest.raises(ValueError, match=r"bucket annotation should be dist.GradBucket"):
        model.register_comm_hook(None, typed)
    model.register_comm_hook(None, lambda state, bucket: 3)
    with pytest.raises(RuntimeError, match=r"must return a torch.futures.Future object"):
        model(torch.ones(1, 2)).sum().backward()

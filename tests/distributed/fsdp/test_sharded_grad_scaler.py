"""A gradient scaler whose processes agree on overflows."""
import inspect

import flambeau as torch
from flambeau import nn
from flambeau.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler


def test_arguments():
    names = list(inspect.signature(ShardedGradScaler).parameters)
    assert names[:6] == ["device", "init_scale", "backoff_factor", "growth_factor",
                         "growth_interval", "enabled"]
    scaler = ShardedGradScaler("cpu", 8.0, 0.25, 4.0, 1)
    assert (scaler.get_scale(), scaler.get_backoff_factor(), scaler.get_growth_factor(),
            scaler.get_growth_interval()) == (8.0, 0.25, 4.0, 1)
    off = ShardedGradScaler("cpu", enabled=False)
    x = torch.ones(2)
    assert off.scale(x) is x and not off.is_enabled()


def test_gradients_of_16_bits_are_divided(alone):
    p = nn.Parameter(torch.ones(2, dtype=torch.float16))
    optimizer = torch.optim.SGD([p], lr=1.0)
    scaler = ShardedGradScaler("cpu", init_scale=4.0)
    scaler.scale(p.float().sum()).backward()
    assert p.grad.tolist() == [4, 4]
    scaler.unscale_(optimizer)
    assert p.grad.tolist() == [1, 1] and p.grad.dtype is torch.float16


def overflow(rank):
    """Only one process overflows: none takes the step, and all back off."""
    p = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([p], lr=1.0)
    scaler = ShardedGradScaler("cpu", init_scale=4.0, growth_interval=1)
    scaler.scale(p.sum() * (float("inf") if rank else 1.0)).backward()
    scaler.step(optimizer)
    scaler.update()
    assert p.tolist() == [1, 1] and scaler.get_scale() == 2.0
    optimizer.zero_grad()
    scaler.scale(p.sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert p.tolist() == [0, 0] and scaler.get_scale() == 4.0


def test_two_processes(processes):
    processes(overflow)

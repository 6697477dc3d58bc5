"""What each way to train in several processes keeps in memory and sends, counted.

    flambeau run --nproc 2 benchmarks/strategies.py

Each process counts, in a step after the first, the bytes of the tensors that it keeps (parameters,
gradients, state of Adam) and those that its messages have; the table shows the most of all
processes. P is the size of the model's parameters, A that of the activations of a layer.
`docs/distributed.md` has the formulas.
"""
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed._c10d.transport.connections import Peers
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.experimental import context_parallel
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.nn import functional as F

WIDTH, BLOCKS, BATCH = 256, 4, 32
sent = [0]


def count_messages():
    """Count the bytes of messages; the transport of gloo sends all through one method."""
    send = Peers.send

    def counted(self, other, key, body, *rest, **more):
        sent[0] += memoryview(body).nbytes if len(body) else 0
        return send(self, other, key, body, *rest, **more)
    Peers.send = counted


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide, self.narrow = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH,
                                                                                bias=False)

    def forward(self, x):
        return self.narrow(self.wide(x).relu())


def network():
    torch.manual_seed(0)
    return nn.Sequential(*[Block() for _ in range(BLOCKS)])


def size_of(tensors):
    """Bytes of tensors, of the pieces that are here."""
    found = {}
    for tensor in tensors:
        if isinstance(tensor, DTensor):
            tensor = tensor.to_local()
        if torch.is_tensor(tensor) and tensor.dim():
            storage = tensor.untyped_storage()
            found[storage.data_ptr()] = storage.nbytes()
    return sum(found.values())


def measured(parameters, optimizer, step):
    """Bytes that stay after a step, and those that it sends: the most of all processes."""
    step()
    optimizer.step()
    sent[0] = 0
    step()
    optimizer.step()
    moved = sent[0]
    if isinstance(optimizer, ZeroRedundancyOptimizer):
        optimizer = optimizer.optim
    kept = size_of([*parameters, *[p.grad for p in parameters],
                    *[v for state in optimizer.state.values() for v in state.values()]])
    found = torch.tensor([kept, moved])
    dist.all_reduce(found, dist.ReduceOp.MAX)
    return found.tolist()


def plain_step(model, rank, optimizer):
    x = torch.ones(BATCH, WIDTH) * (rank + 1)

    def step():
        optimizer.zero_grad()
        model(x).square().mean().backward()
    return step


def data_parallel(rank, size, mesh):
    model = nn.parallel.DistributedDataParallel(network())
    optimizer = torch.optim.Adam(model.parameters())
    return measured([*model.parameters()], optimizer, plain_step(model, rank, optimizer))


def zero(rank, size, mesh):
    model = nn.parallel.DistributedDataParallel(network())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam)
    return measured([*model.parameters()], optimizer, plain_step(model, rank, optimizer))


def fully_sharded(rank, size, mesh):
    model = FullyShardedDataParallel(network(), auto_wrap_policy=ModuleWrapPolicy({Block}),
                                     device_id=torch.device("cpu"))
    optimizer = torch.optim.Adam(model.parameters())
    return measured([*model.parameters()], optimizer, plain_step(model, rank, optimizer))


def fully_shard_(rank, size, mesh):
    model = network()
    for block in model:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.Adam(model.parameters())
    return measured([*model.parameters()], optimizer, plain_step(model, rank, optimizer))


def tensor_parallel(rank, size, mesh):
    model = network()
    for block in model:
        parallelize_module(block, mesh, {"wide": ColwiseParallel(), "narrow": RowwiseParallel()})
    optimizer = torch.optim.Adam(model.parameters())
    return measured([*model.parameters()], optimizer, plain_step(model, 0, optimizer))


def pipeline(rank, size, mesh):
    blocks = [*network()]
    own = nn.Sequential(*blocks[BLOCKS * rank // size:BLOCKS * (rank + 1) // size])
    stage = PipelineStage(own, rank, size, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, size, loss_fn=lambda y, target: (y - target).square().mean())
    optimizer = torch.optim.Adam(own.parameters())

    def step():
        optimizer.zero_grad()
        given = (torch.ones(BATCH, WIDTH),) if rank == 0 else ()
        schedule.step(*given, **({"target": torch.zeros(BATCH, WIDTH)} if rank == size - 1 else {}))
    return measured([*own.parameters()], optimizer, step)


def context(rank, size, mesh):
    """Attention alone: what is kept is a process's part of query, key and value."""
    parts = [torch.ones(1, 4, BATCH * 4, WIDTH // 4) for _ in range(3)]
    local = [p.chunk(size, 2)[rank].contiguous().requires_grad_() for p in parts]
    optimizer = torch.optim.SGD(local, 0.0)

    def step():
        with context_parallel(mesh):
            F.scaled_dot_product_attention(*local, is_causal=False).square().mean().backward()
    kept, moved = measured(local, optimizer, step)
    return kept // 2, moved                             # without the gradients


STRATEGIES = {
    "DistributedDataParallel": data_parallel, "ZeroRedundancyOptimizer": zero,
    "FullyShardedDataParallel": fully_sharded, "fully_shard": fully_shard_,
    "tensor parallel": tensor_parallel, "pipeline": pipeline, "context parallel": context}


def main():
    dist.init_process_group("gloo")
    count_messages()
    rank, size = dist.get_rank(), dist.get_world_size()
    mesh = init_device_mesh("cpu", (size,))
    model, activation = size_of(network().parameters()), BATCH * WIDTH * 4
    if rank == 0:
        print(f"{size} processes; P = {model} bytes, A = {activation}")
    for name in sys.argv[1:] or STRATEGIES:
        kept, moved = STRATEGIES[name](rank, size, mesh)
        if rank == 0:
            print(f"{name:26} keeps {kept / model:6.3f} P  sends {moved / model:6.3f} P = "
                  f"{moved / activation:7.2f} A", flush=True)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

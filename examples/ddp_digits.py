"""Train on scikit-learn's handwritten digits, in one process or in several.

    flambeau run examples/ddp_digits.py                     one process
    flambeau run --nproc 2 examples/ddp_digits.py           two (torchrun --nproc-per-node 2 …)

Each step learns from the same 64 images, whatever the number of processes: each of them takes its
part, and `DistributedDataParallel` gives all the mean of their gradients. So the losses are the
same, up to the last digits of sums.
"""

import argparse
import os

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

BATCH = 64


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--backend", help="mpi or gloo; by default mpi where it is installed")
    return parser.parse_args()


def main():
    options = arguments()
    if "RANK" in os.environ:                        # started by a launcher
        dist.init_process_group(options.backend)
    rank = dist.get_rank() if dist.is_initialized() else 0
    size = dist.get_world_size() if dist.is_initialized() else 1

    torch.manual_seed(0)                            # the same weights and batches in all processes
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    shared = DistributedDataParallel(model) if size > 1 else model
    optimizer = torch.optim.SGD(shared.parameters(), lr=0.1, momentum=0.9)

    images, labels = load_digits(return_X_y=True)
    images = torch.tensor(images / 16, dtype=torch.float32)
    labels = torch.tensor(labels)
    for epoch in range(options.epochs):
        order = torch.randperm(len(images))
        total, steps = torch.zeros(()), len(images) // BATCH
        for step in range(steps):
            mine = order[step * BATCH:(step + 1) * BATCH].chunk(size)[rank]
            loss = F.cross_entropy(shared(images[mine]), labels[mine])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        if size > 1:
            dist.all_reduce(total)
        if rank == 0:
            print(f"epoch {epoch + 1}: loss {total.item() / size / steps:.4f}")
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()

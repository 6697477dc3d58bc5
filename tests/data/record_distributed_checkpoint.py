"""Write a checkpoint of two processes with PyTorch, into `distributed_checkpoint/`.

Run by hand where PyTorch is installed: `python tests/data/record_distributed_checkpoint.py`.
"""
from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import torch
from torch import distributed as dist
from torch import multiprocessing as mp
from torch.distributed import checkpoint
from torch.distributed._shard import sharded_tensor
from torch.distributed._shard.sharding_spec import ChunkShardingSpec

FOLDER = Path(__file__).parent / "distributed_checkpoint"


def write(rank: int, url: str) -> None:
    dist.init_process_group("gloo", init_method=url, rank=rank, world_size=2)
    pieces = sharded_tensor.zeros(ChunkShardingSpec(0, ["rank:0/cpu", "rank:1/cpu"]), 5, 2)
    pieces.local_tensor().copy_(torch.arange(10.0).view(5, 2)[3 * rank:3 * rank + 3])
    checkpoint.save({"pieces": pieces, "model": {"w": torch.ones(3), "l": [1, torch.zeros(2)]},
                     "half": torch.arange(4, dtype=torch.bfloat16), "step": 7},
                    checkpoint_id=FOLDER)
    dist.destroy_process_group()


if __name__ == "__main__":
    shutil.rmtree(FOLDER, ignore_errors=True)
    mp.spawn(write, (f"file://{tempfile.mkdtemp()}/store",), nprocs=2)

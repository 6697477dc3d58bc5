"""States of optimizers in pieces."""
from __future__ import annotations

import flambeau as torch
from flambeau import nn
from flambeau.distributed import checkpoint as dcp
from flambeau.distributed.fsdp import FullyShardedDataParallel as FSDP
from flambeau.distributed.fsdp import StateDictType


def models(rank, folder):
    torch.manual_seed(rank)
    model = FSDP(nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)), use_orig_params=True)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    with FSDP.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
        dcp.save({"model": model.state_dict(),
                  "optim": FSDP.optim_state_dict(model, optimizer)}, checkpoint_id=folder)
    plain = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    dcp.load({"model": plain.state_dict()}, checkpoint_id=folder)
    with FSDP.summon_full_params(model):
        for p, q in zip(model.parameters(), plain.parameters()):
            assert torch.equal(p, q)
    with FSDP.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
        found = dcp.load_sharded_optimizer_state_dict(
            model.state_dict(), "optim", dcp.FileSystemReader(folder))
        optimizer.load_state_dict(FSDP.optim_state_dict_to_load(model, optimizer,
                                                                found["optim"]))


def test_two_processes(processes, tmp_path):
    processes(models, str(tmp_path))

"""Groups as objects, and older names of modules."""
import importlib
from datetime import timedelta

import pytest

import flambeau as torch
from flambeau.distributed import _dist2
from flambeau.distributed.elastic.utils.distributed import get_free_port


def test_a_group_of_one(monkeypatch):
    for name, value in (("RANK", 0), ("WORLD_SIZE", 1), ("MASTER_ADDR", "127.0.0.1"),
                        ("MASTER_PORT", get_free_port())):
        monkeypatch.setenv(name, str(value))
    group = _dist2.new_group("gloo", timedelta(seconds=5), "cpu")
    x = torch.ones(2)
    group.allreduce([x]).wait()
    assert group.size() == 1 and group.name() == "gloo" and x.tolist() == [1.0, 1.0]
    assert _dist2.current_process_group() is None
    with _dist2.process_group(group):
        assert _dist2.current_process_group() is group
    with pytest.raises(ValueError, match="Backend zz not registered"):
        _dist2.new_group("zz", timedelta(seconds=5), "cpu")
    with pytest.raises(ValueError, match="Backend gloo already registered"):
        _dist2.register_backend("gloo", None)
    group.shutdown()


@pytest.mark.parametrize("old, new", [("_sharded_tensor", "_shard.sharded_tensor"),
                                      ("_sharding_spec", "_shard.sharding_spec")])
def test_older_names(old, new):
    with pytest.warns(DeprecationWarning, match=f"distributed.{old}` will be deprecated"):
        module = importlib.reload(importlib.import_module(f"flambeau.distributed.{old}"))
    known = importlib.import_module(f"flambeau.distributed.{new}")
    assert module.ShardMetadata is known.ShardMetadata


def test_fully_shard_in_its_older_place():
    from flambeau.distributed import fsdp
    from flambeau.distributed._composable.fsdp import fully_shard as module
    assert getattr(module, "fully_shard", module) is fsdp.fully_shard

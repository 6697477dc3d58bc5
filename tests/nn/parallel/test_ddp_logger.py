"""What DistributedDataParallel can say of itself."""
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.nn.parallel import DistributedDataParallel
from flambeau.nn.parallel.distributed import _dump_DDP_relevant_env_vars


@pytest.fixture
def model(group):
    torch.manual_seed(0)
    return DistributedDataParallel(nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)),
                                   bucket_cap_mb=1, find_unused_parameters=True)


def test_how_it_was_made(model):
    data = model._get_ddp_logging_data()
    assert data["module_name"] == "Sequential" and data["world_size"] == 1 and data["rank"] == 0
    assert data["num_parameter_tensors"] == 4 and data["dtypes"] == "float"
    assert data["total_parameter_size_bytes"] == 4 * (12 + 4 + 8 + 2)
    assert data["bucket_cap_bytes"] == 1 << 20 and data["find_unused_parameters"] == 1
    assert data["backend_name"] == "gloo" and data["bucket_sizes"] == str(4 * 26)


def test_how_long_passes_take(model):
    for _ in range(3):
        model(torch.ones(2, 3)).sum().backward()
    data = model._get_ddp_logging_data()
    assert data["iteration"] == 2 and data["num_buckets_reduced"] == 1
    assert data["prev_iteration_grad_ready_order_indices"].count(",") == 3
    for name in ("forward_compute_time", "backward_compute_time", "backward_comm_time"):
        assert 0 <= data[name] < 10**10 and data[f"avg_{name}"] >= 0


def test_events(model):
    model.register_comm_hook(None, _mean)
    model.logger.set_error_and_log("it broke")
    data = model._get_ddp_logging_data()
    assert data["comm_hook"] == "_mean" and data["has_error"] == 1 and data["error"] == "it broke"


def _mean(state, bucket):
    future = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


def test_rates(model):
    with pytest.raises(ValueError, match="sample rate should be equal or greater than 1"):
        model._set_ddp_runtime_logging_sample_rate(0)


def test_variables(monkeypatch, capsys):
    monkeypatch.setenv("WORLD_SIZE", "7")
    monkeypatch.delenv("RANK", raising=False)
    _dump_DDP_relevant_env_vars()
    said = capsys.readouterr().out.splitlines()
    assert "env:WORLD_SIZE=7" in said and "env:RANK=N/A" in said

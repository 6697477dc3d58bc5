"""The pickler in C writes what the one in Python writes, or leaves the object to that."""
import io

import pytest

import flambeau as torch
from flambeau import nn
from flambeau._serialization.pickling import CheckpointPickler, Storages
from flambeau._serialization.quick_pickler import NeedsNames, quick_pickle


def test_the_quick_pickler_writes_what_the_other_one_writes():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    optimizer = torch.optim.Adam(model.parameters())
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    optimizer.step()
    x = torch.randn(4, 4)
    for obj in (model.state_dict(), {"model": model.state_dict(), "rate": 1e-3, "epoch": 1 << 40},
                optimizer.state_dict(), [x, x[1:], x.t(), x.half()], nn.Parameter(x), x.size()):
        storages, file = Storages(), io.BytesIO()
        CheckpointPickler(file, 2, storages).dump(obj)
        again = Storages()
        assert quick_pickle(obj, 2, again) == file.getvalue()
        assert [s.data_ptr() for s in again.found] == [s.data_ptr() for s in storages.found]


@pytest.mark.parametrize("obj", [torch.float32, torch.device("cpu"), nn.Linear, torch.relu,
                                 nn.Linear(2, 2), torch.eye(2).to_sparse()],
                         ids=["dtype", "device", "class", "function", "module", "sparse"])
def test_the_quick_pickler_leaves_what_has_other_names(obj):
    with pytest.raises(NeedsNames):
        quick_pickle(obj, 2, Storages())
    file = io.BytesIO()
    torch.save({"x": torch.ones(2), "other": obj}, file)
    file.seek(0)
    torch.testing.assert_close(torch.load(file, weights_only=False)["x"], torch.ones(2))

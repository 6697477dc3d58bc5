"""The parameters of a module, and attributes that are sharded tensors."""
import pytest
from shard_cases import deprecated, whole

from flambeau import nn
from flambeau.distributed._shard import sharded_tensor as st
from flambeau.distributed._shard.sharded_optim import named_params_with_sharded_tensor

pytestmark = deprecated


@pytest.mark.parametrize(("prefix", "recurse", "names"), [
    ("", True, ["0.extra", "1.extra", "0.weight", "0.bias", "1.weight"]),
    ("p", True, ["p.0.extra", "p.1.extra", "0.weight", "0.bias", "1.weight"]),
    ("", False, ["0.weight", "0.bias", "1.weight"])])
def test_names(alone, prefix, recurse, names):
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2, bias=False))
    for part in model:
        part.extra = st.ones(whole(), 2)
    found = dict(named_params_with_sharded_tensor(model, prefix, recurse))
    assert list(found) == names
    assert all(found[name] is p for name, p in model.named_parameters())


def test_each_is_given_once(alone):
    model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    model[1].weight = model[0].weight
    model[0].a = model[1].b = st.ones(whole(), 2)
    assert [n for n, _ in named_params_with_sharded_tensor(model)] == ["0.a", "0.weight"]

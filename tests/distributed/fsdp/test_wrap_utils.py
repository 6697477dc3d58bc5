"""The order in which modules are wrapped."""
from flambeau import nn
from flambeau.distributed.fsdp._wrap_utils import _get_post_order_named_modules


def test_children_come_first():
    model = nn.Sequential(nn.Sequential(nn.ReLU(), nn.Tanh()), nn.Identity())
    assert [name for name, _ in _get_post_order_named_modules(model)] == ["0.0", "0.1", "0", "1",
                                                                          ""]
    assert _get_post_order_named_modules(nn.ReLU())[0][0] == ""


def test_each_module_is_named_once():
    one = nn.ReLU()
    model = nn.ModuleDict({"a": nn.Sequential(one), "b": one})
    found = _get_post_order_named_modules(model)
    assert [name for name, _ in found] == ["a", "b", ""]         # nearest to the root
    assert all(model.get_submodule(name) is module for name, module in found)

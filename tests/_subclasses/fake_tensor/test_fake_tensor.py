"""What stands beside fake tensors and their mode."""
import copy

import flambeau as torch
from flambeau import nn
from flambeau._subclasses import fake_tensor
from flambeau._subclasses.fake_tensor import FakeCopyMode, FakeTensor, FakeTensorMode


def test_copies_of_a_module_are_fake():
    module = nn.Linear(3, 2)
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with FakeCopyMode(mode):
        fake = copy.deepcopy(module)
    assert all(isinstance(p, FakeTensor) for p in fake.parameters())
    assert not any(isinstance(p, FakeTensor) for p in module.parameters())
    with mode:
        assert fake(torch.ones(4, 3)).shape == (4, 2)
    tied = nn.ModuleList([module, module])
    with FakeCopyMode(mode):
        both = copy.deepcopy(tied)
    assert both[0].weight is both[1].weight


def test_ops_without_a_fake_form_run_on_zeros():
    mode = FakeTensorMode()
    x = mode.from_tensor(torch.ones(2, 3))
    leaves, spec = torch.utils._pytree.tree_flatten(((x,), {}))
    found = fake_tensor.run_fallback_kernel(mode, torch.ops.aten.sin.default, leaves, spec,
                                            RuntimeError())
    assert isinstance(found, FakeTensor) and found.shape == (2, 3)


def test_metadata():
    found = fake_tensor.extract_tensor_metadata(torch.ones(2, 3).t())
    assert found.shape == (3, 2) and tuple(found.stride) == (1, 3)
    assert found.dtype is torch.float32


def test_leaves_and_sets():
    x = torch.ones(1)
    assert fake_tensor.tree_flatten_only(torch.Tensor, {"a": [x, 3], "b": "c"}) == [x]
    assert list(fake_tensor.ordered_set(3, 1, 2)) == [3, 1, 2]
    assert fake_tensor.has_meta(torch.ops.aten.add.Tensor)


def test_tensors_that_a_wrapper_holds():
    class Pair(torch.Tensor):
        @staticmethod
        def __new__(cls, a, b):
            return torch.Tensor._make_wrapper_subclass(cls, a.shape, dtype=a.dtype)

        def __init__(self, a, b):
            self.a, self.b = a, b

        def __tensor_flatten__(self):
            return ["a", "b"], None

        @staticmethod
        def __tensor_unflatten__(inner, meta, size, stride):
            return Pair(inner["a"], inner["b"])

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return NotImplemented
    a, b, c = torch.ones(1), torch.zeros(1), torch.ones(1)
    out = []
    assert fake_tensor.get_plain_tensors(Pair(Pair(a, b), c), out=out) is out
    assert [id(t) for t in out] == [id(a), id(b), id(c)]
    assert fake_tensor.get_plain_tensors(a, out=[])[0] is a

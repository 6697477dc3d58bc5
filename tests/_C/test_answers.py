"""Questions that PyTorch answers in C++."""

import pytest

import flambeau as torch

_C = torch._C


def test_every_tensor_is_an_instance_of_the_base():
    assert isinstance(torch.ones(1), _C.TensorBase) and not isinstance(1, _C.TensorBase)
    assert issubclass(torch.nn.Parameter, _C.TensorBase)
    with pytest.raises(RuntimeError, match="Cannot directly construct"):
        _C.TensorBase()


def test_views_are_aliases_of_one_storage():
    base = torch.arange(6.0)
    view, other = base.view(2, 3)[1:], torch.arange(6.0)
    assert _C._is_alias_of(base, view) and not _C._is_alias_of(base, other)
    assert _C._overlaps(base, view) and not _C._overlaps(base, other)
    assert _C._storage_address(view) == _C._storage_address(base) != _C._storage_address(other)
    assert _C._data_address(view) == base.data_ptr() == view.data_ptr() - 12


def test_lazy_clones_are_copied_when_written_to():
    base = torch.ones(3)
    clone = torch._lazy_clone(base)
    assert _C._is_cow_tensor(clone) and _C._is_cow_tensor(base)
    clone.add_(1)
    assert not _C._is_cow_tensor(clone)
    assert base.tolist() == [1.0] * 3 and clone.tolist() == [2.0] * 3


@pytest.mark.parametrize("a, b, expected", [
    ((2, 1), (3,), (2, 3)), ((), (4,), (4,)), ((0,), (1,), (0,)), ((5, 1, 2), (3, 1), (5, 3, 2)),
])
def test_shapes_broadcast(a, b, expected):
    found = _C._infer_size(torch.Size(a), torch.Size(b))
    assert found == expected and type(found) is torch.Size


def test_shapes_that_do_not_broadcast():
    with pytest.raises(RuntimeError, match=r"size of tensor a \(2\) must match the size of tensor "
                                           r"b \(3\) at non-singleton dimension 0"):
        _C._infer_size(torch.Size([2]), torch.Size([3]))
    with pytest.raises((RuntimeError, TypeError), match=r"expected a torch\.Size as argument 1"):
        _C._infer_size((2,), torch.Size([2]))


def test_one_that_requires_grad_is_enough():
    plain, leaf = torch.ones(1), torch.ones(1, requires_grad=True)
    for args, kwargs in (((plain, leaf), {}), (([plain, leaf],), {}), ((3, [leaf]), {}),
                         ((plain,), {"other": leaf}), ((plain,), {"others": [leaf]})):
        assert _C._any_requires_grad(*args, **kwargs)
    assert not _C._any_requires_grad(plain, [plain], 3, (leaf,), [3, leaf])
    assert not _C._any_requires_grad()


def test_versions_are_counted():
    x, y = torch.ones(2), torch.ones(2)
    torch._C._increment_version([x, y])
    torch._C._increment_version([x])
    assert (x._version, y._version) == (2, 1)


def test_switches_of_backends_are_those_of_torch_backends():
    before = _C._get_cudnn_benchmark()
    try:
        _C._set_cudnn_benchmark(not before)
        assert torch.backends.cudnn.benchmark is not before
    finally:
        _C._set_cudnn_benchmark(before)
    assert torch.backends.cudnn.benchmark is before


def test_autocast_of_any_device():
    assert not torch._C._is_any_autocast_enabled()
    with torch.autocast("cpu"):
        assert torch._C._is_any_autocast_enabled()


def test_schemas_by_name():
    assert str(_C._get_schema("aten::add", "Tensor")) == (
        "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")
    with pytest.raises(RuntimeError, match="Found no matching schema"):
        _C._get_schema("aten::add", "no_such")
    call, names = _C._jit_get_operation("aten::relu")
    assert "" in names and call(torch.tensor([-1.0, 2.0])).tolist() == [0.0, 2.0]
    assert _C._jit_get_operation("aten::no_such_op") == (None, None)


def test_documents_are_not_replaced():
    with pytest.raises(RuntimeError, match="function 'upper' already has a docstring"):
        _C._add_docstr("".upper, "Something else.")

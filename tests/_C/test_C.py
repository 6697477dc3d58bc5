"""Questions that PyTorch answers in C++."""

import pytest

import flambeau as torch
from flambeau import _C
from flambeau.autograd import profiler, profiler_legacy


def test_storages_count_who_looks_at_them():
    a = torch.ones(3)
    assert _C._storage_Use_Count(a.untyped_storage()._cdata) == 2
    view = a[1:]
    assert _C._storage_Use_Count(a.untyped_storage()._cdata) == 3
    assert _C._is_alias_of(a, view) and not _C._is_alias_of(a, torch.ones(3))
    assert _C._storage_id(a) == _C._storage_address(view) == a.untyped_storage()._cdata
    storage = a.untyped_storage()
    del view
    assert _C._storage_Use_Count(storage._cdata) == 2


def test_tensors():
    x = torch.ones(2, requires_grad=True)
    assert _C._any_requires_grad([x]) and not _C._any_requires_grad([x.detach()])
    assert _C._infer_size(torch.Size((2, 1)), torch.Size((1, 3))) == (2, 3)
    with pytest.raises(RuntimeError, match=r"expected a torch\.Size as argument 1"):
        _C._infer_size((2, 1), (1, 3))
    before = x._version
    _C._increment_version([x])
    assert x._version == before + 1
    assert _C.Generator is torch.Generator and _C.device is torch.device


def test_threads_have_names():
    from flambeau import multiprocessing
    before = _C._get_thread_name()
    multiprocessing._set_thread_name("worker")
    assert multiprocessing._get_thread_name() == "worker"
    _C._set_thread_name(before)


def test_schemas_of_ops():
    assert str(_C._get_schema("aten::add", "Tensor")).startswith("aten::add.Tensor(Tensor self")
    with pytest.raises(RuntimeError, match="Found no matching schema"):
        _C._get_schema("aten::no_such_op", "")
    assert _C._jit_get_operation("aten::no_such_op") == (None, None)
    assert "Tensor" in _C._jit_get_operation("aten::add")[1]
    assert _C._get_operation_overload("aten::add", "Tensor")[0](torch.ones(1), 1).item() == 2.0
    assert len(_C._jit_get_schemas_for_operator("aten::relu")) >= 1


def test_graphs_of_torchscript_can_be_named_not_made():
    with pytest.raises(NotImplementedError, match="export give graphs"):
        _C.Graph()
    for name in ("Value", "Block", "ScriptObject", "ScriptMethod"):
        with pytest.raises(TypeError, match="No constructor defined"):
            getattr(_C, name)()
    with pytest.raises(NotImplementedError, match="SourceRangeFactory"):
        _C._jit_tree_views.SourceRangeFactory("", None, 0, 0)
    with pytest.raises(NotImplementedError, match="_set_tracing_state"):
        _C._set_tracing_state(object())
    _C._set_tracing_state(None)
    assert _C._get_tracing_state() is None
    assert not _C._is_tracing()


def test_settings():
    _C._debug_only_display_vmap_fallback_warnings(True)
    assert _C._debug_only_are_vmap_fallback_warnings_enabled()
    _C._debug_only_display_vmap_fallback_warnings(False)
    assert not _C._is_any_autocast_enabled()
    with torch.autocast("cpu"):
        assert _C._is_any_autocast_enabled()
    config = _C._profiler._ExperimentalConfig(verbose=True)
    assert config.verbose and config.trace_only is False
    _C._dynamo.eval_frame._set_lru_cache(True)
    with pytest.raises(NotImplementedError, match="does not watch frames"):
        _C._dynamo.eval_frame.set_eval_frame(print)


def test_profiles_can_be_ended_from_elsewhere():
    with profiler_legacy.profile() as running:
        torch.ones(2).exp()
        events = torch.autograd._disable_profiler()
    assert [event.name for event in events] == ["aten::ones", "aten::exp"]
    assert [event.name for event in running.function_events] == ["aten::ones", "aten::exp"]
    assert not profiler._profiler_enabled()
    with pytest.raises(RuntimeError, match="Can't disable Kineto profiler"):
        torch.autograd._disable_profiler()


def test_checkpoints_are_valid_in_whole_backward_passes():
    seen = []

    class Ask(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            seen.append(torch.autograd._is_checkpoint_valid())
            return grad
    x = torch.ones(1, requires_grad=True)
    Ask.apply(x).backward()
    torch.autograd.grad(Ask.apply(x), x)
    assert seen == [True, False] and torch.autograd._is_checkpoint_valid()


def test_profiles_of_memory_that_are_missing_say_so():
    from flambeau.profiler import _memory_profiler as memory
    with pytest.raises(NotImplementedError, match="MemoryProfile"):
        memory.MemoryProfile(None)


def test_what_functional_calls():
    assert torch._C._nn.avg_pool2d is torch.nn.functional.avg_pool2d
    values, indices = torch._C._nn.max_pool2d_with_indices(torch.ones(1, 1, 2, 2), 2)
    assert values.shape == indices.shape == (1, 1, 1, 1)
    with pytest.raises(AttributeError, match=r"'torch._C._nn' has no attribute 'no_such_op'"):
        torch._C._nn.no_such_op


def test_elements_that_are_one_in_memory():
    x = torch.ones(1, 3)
    assert torch._debug_has_internal_overlap(x) == 0
    assert torch._debug_has_internal_overlap(x.expand(4, 3)) == 1
    sparse_rows = torch.ones(2, 1, 10)[::2].as_strided((2, 1, 5), (10, 0, 2))
    assert torch._debug_has_internal_overlap(sparse_rows) == 2


def test_rows_in_reverse():
    assert reversed(torch.arange(3)).tolist() == [2, 1, 0]
    assert reversed(torch.tensor(3)).tolist() == 3


def test_shapes_and_functions_of_elements_refuse_what_does_not_fit():
    with pytest.raises(TypeError, match=r"can only concatenate tuple \(not list\) to torch.Size"):
        torch.Size([1]) + [2]
    with pytest.raises(TypeError, match="must be real number, not str"):
        torch.ones(1).apply_(lambda x: "text")
    with pytest.raises(RuntimeError, match=r"Can't call map_\(\) on Variable that requires grad"):
        torch.ones(1, requires_grad=True).map_(torch.ones(1), lambda x, y: x)


def test_the_base_of_tensors_is_not_to_be_extended():
    base = torch._C.TensorBase
    assert isinstance(torch.ones(1), base) and issubclass(torch.Tensor, base)
    assert base.add is torch.Tensor.add
    with pytest.raises(RuntimeError, match="Cannot directly construct"):
        base()
    with pytest.raises(RuntimeError, match="Cannot subclass"):
        type("Own", (base,), {})

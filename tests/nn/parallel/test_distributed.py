"""Copies of a module that share their gradients: one process, which needs no others."""
import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau import nn
from flambeau.nn.parallel import DistributedDataParallel


@pytest.fixture
def layer():
    torch.manual_seed(0)
    return nn.Linear(3, 2)


def test_it_is_the_module_with_a_prefix(group, layer):
    model, x = DistributedDataParallel(layer), torch.ones(4, 3)
    assert list(model.state_dict()) == ["module.weight", "module.bias"]
    assert torch.equal(model(x), layer(x))
    model(x).sum().backward()
    assert layer.weight.grad.tolist() == [[4, 4, 4]] * 2
    assert repr(model).startswith("DistributedDataParallel(\n  (module): Linear(")


def test_gradients_that_are_not_shared_add_up(group, layer):
    model, calls = DistributedDataParallel(layer), []

    def hook(state, bucket):
        calls.append(bucket.buffer().clone())
        future = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    model.register_comm_hook(None, hook)
    with model.no_sync():
        model(torch.ones(1, 3)).sum().backward()
        assert not calls and not model.require_backward_grad_sync
    model(torch.ones(1, 3)).sum().backward()
    assert len(calls) == 1 and layer.bias.grad.tolist() == [2, 2]


def test_gradients_may_be_views_of_buckets(group, layer):
    model = DistributedDataParallel(layer, gradient_as_bucket_view=True)
    model(torch.ones(1, 3)).sum().backward()
    storage = layer.weight.grad.untyped_storage().data_ptr()
    assert layer.bias.grad.untyped_storage().data_ptr() == storage


def test_parameters_may_be_ignored(group, layer):
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(layer, ["bias"])
    model = DistributedDataParallel(layer)
    assert model.parameters_to_ignore == {"bias"} and len(model.reducer.parameters) == 1
    named = DistributedDataParallel._get_data_parallel_params(model, named_params=True)
    assert [name for name, _ in named] == ["weight"]


@pytest.mark.parametrize("make, error, message", [
    (lambda m: DistributedDataParallel(m.requires_grad_(False)), RuntimeError,
     "is not needed when a module doesn't have any parameter that requires a gradient"),
    (lambda m: DistributedDataParallel(m, device_ids=[0, 1]), ValueError,
     "device_ids can only be None or contain a single element"),
    (lambda m: DistributedDataParallel(m, device_ids=[0]), ValueError,
     "arguments only work with single-device/multiple-device GPU modules or CPU modules"),
    (lambda m: DistributedDataParallel(nn.LazyLinear(1)), RuntimeError,
     "Modules with uninitialized parameters can't be used with"),
    (lambda m: DistributedDataParallel(m, delay_all_reduce_named_params=[("a", m.bias)]),
     ValueError, "need to be set at the same time"),
])
def test_refusals(group, layer, make, error, message):
    with pytest.raises(error, match=message):
        make(layer)


def annotated(state, bucket: int):
    return None


def returning(state, bucket: dist.GradBucket) -> int:
    return 1


@pytest.mark.parametrize("hook, error, message", [
    (3, TypeError, "Communication hook must be callable"),
    (annotated, ValueError, "bucket annotation should be dist.GradBucket"),
    (returning, ValueError, "return annotation should be torch.futures.Future")])
def test_hooks_that_are_none(group, layer, hook, error, message):
    with pytest.raises(error, match=message):
        DistributedDataParallel(layer).register_comm_hook(None, hook)


def test_one_hook_alone(group, layer):
    model = DistributedDataParallel(layer)
    model._register_builtin_comm_hook(dist.BuiltinCommHookType.FP16_COMPRESS)
    with pytest.raises(RuntimeError, match="can only be called once"):
        model.register_comm_hook(None, lambda state, bucket: None)
    model(torch.full((1, 3), 0.1)).sum().backward()
    assert torch.equal(layer.weight.grad, torch.full((2, 3), 0.1).half().float())


def test_without_a_group(layer):
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        DistributedDataParallel(layer)

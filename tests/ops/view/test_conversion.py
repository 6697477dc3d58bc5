"""Conversions: which tensor they give, in which memory, and with which history."""
from functools import partial

import numpy as np
import pytest
from sample_tests import SampleTests
from samples import Samples, call

import flambeau as torch

X = torch.arange(24.0).reshape(1, 2, 3, 4)


@pytest.mark.parametrize("convert", [
    lambda x: x.to(torch.float32), lambda x: x.to("cpu"), lambda x: x.to(X), lambda x: x.float(),
    lambda x: x.to(torch.device("cpu"), torch.float32), lambda x: x.type_as(X), lambda x: x.cpu(),
    lambda x: x.contiguous(), lambda x: x.to(memory_format=torch.contiguous_format)])


def test_a_tensor_that_fits_is_itself(convert):
    x = X.clone()
    assert convert(x) is x


@pytest.mark.parametrize("convert", [
    lambda x: x.to(torch.float32, copy=True), lambda x: x.to("cpu", copy=True), torch.clone,
    lambda x: x.to(torch.float64).to(x)])


def test_copies_have_memory_of_their_own(convert):
    copied = convert(X)
    assert copied.data_ptr() != X.data_ptr()
    assert torch.equal(copied, X)


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64, torch.complex64, torch.bool,
                                   torch.float16, torch.bfloat16, torch.complex32])


@pytest.mark.parametrize("turn, strides", [
    (lambda x: x, (24, 12, 4, 1)), (lambda x: x.transpose(1, 3), (24, 1, 4, 12)),
    (lambda x: x[:, :, ::2], (16, 8, 4, 1))])


def test_types_keep_the_order_in_memory(dtype, turn, strides):
    x = turn(X)
    found = x.to(dtype)
    assert found.dtype is dtype
    assert found.stride() == strides
    assert found.to(torch.complex128).tolist() == x.to(dtype).tolist()


@pytest.mark.parametrize("convert", [
    lambda x, f: x.double(memory_format=f), lambda x, f: x.clone(memory_format=f),
    lambda x, f: x.to(torch.int32, memory_format=f), lambda x, f: x.contiguous(memory_format=f)])


def test_memory_formats(convert):
    last = convert(X, torch.channels_last)
    assert last.stride() == (24, 1, 8, 2)
    assert last.tolist() == X.tolist()
    back = convert(last, torch.contiguous_format)
    assert back.stride() == (24, 12, 4, 1)
    assert back.tolist() == X.tolist()
    assert convert(last, torch.preserve_format).stride() == last.stride() \
        if convert(X, torch.contiguous_format) is not X else True


@pytest.mark.parametrize("rank", range(1, 7))
@pytest.mark.parametrize("form, wanted", [("channels_last", 4), ("channels_last_3d", 5)])
def test_a_format_of_other_ranks_is_refused(rank, form, wanted):
    x, last = torch.ones([2] * rank), {"memory_format": getattr(torch, form)}
    for convert in (x.clone, x.to, x.double, x.half, x.chalf, x.contiguous,
                    partial(torch.empty_like, x), partial(torch.empty, x.shape)):
        if rank == wanted:
            assert convert(**last).stride(1) == 1
            continue
        with pytest.raises(RuntimeError, match=f"required rank {wanted} tensor to use {form} for"):
            convert(**last)


@pytest.mark.parametrize("source", [torch.float32, torch.int64, torch.bool, torch.complex64])
@pytest.mark.parametrize("shape", [(2, 3, 2, 3), (1, 3, 1, 2), (0, 3, 2, 2)])
@pytest.mark.parametrize("turned", [0, 1, 3])
@pytest.mark.parametrize("form", ["channels_last", "contiguous_format", "preserve_format"])
def test_half_complex_copies_lie_as_copies_of_other_types(source, shape, turned, form):
    x = torch.randint(9, shape).to(source).transpose(0, turned)
    form = {"memory_format": getattr(torch, form)}
    found, other = x.to(torch.complex32, **form), x.to(torch.complex128, **form)
    assert found.stride() == other.stride() and found.to(torch.complex128).equal(other)


def test_gradients_return_as_the_type_that_they_came_from():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    x.double().to(torch.complex64).real.sum().backward()
    assert x.grad.dtype is torch.float32
    assert x.grad.tolist() == [1, 1]
    assert type(x.double().grad_fn).__name__ == "ToCopyBackward0"
    assert type(x.clone().grad_fn).__name__ == "CloneBackward0"


def test_detached_tensors_share_memory_and_writes():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x.exp()
    y.detach().add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    assert not x.detach().requires_grad
    assert x.detach().data_ptr() == x.data_ptr()


def test_members_say_what_a_tensor_is():
    x = torch.ones(2, 1, 3)
    assert (x.size(), x.size(-1), x.stride(), x.stride(0)) == ((2, 1, 3), 3, (3, 3, 1), 3)
    assert (x.dim(), x.numel(), x.element_size(), x.is_contiguous()) == (3, 6, 4, True)
    assert torch.empty(0).data_ptr() == 0
    assert isinstance(x.size(), torch.Size)
    assert torch.tensor(2.5, dtype=torch.bfloat16).item() == 2.5
    assert torch.tensor([[True]]).item() is True
    assert x.tolist() == [[[1.0] * 3]] * 2
    assert np.shares_memory(x.numpy(), x.detach().numpy())


@pytest.mark.parametrize("call, text", [
    (lambda x: x.size("a"), r"size\(\): argument 'dim' \(position 1\) must be int, not str"),
    (lambda x: x.item(1), r"item\(\) takes no arguments \(1 given\)"),
    (lambda x: x.is_contiguous(1), r"is_contiguous\(\) takes 0 positional arguments but 1 was"),
    (lambda x: x.to([]), r"to\(\) received an invalid combination of arguments"),
    (lambda x: x.double(1), r"double\(\) takes 0 positional arguments but 1 was given")])


def test_wrong_calls(call, text):
    with pytest.raises(TypeError, match=text):
        call(X)


# ---- samples ------------------------------------------------------------------------------------

family = Samples()

for _name, _args in {
    "clone": [()],
    "Tensor.contiguous": [()],
    "detach": [()],
}.items():
    @family(_name)
    def _(r, given=_args):
        return [call(r.real(2, 3), *args) for args in given]


class TestSamples(SampleTests):
    family = family


@pytest.mark.parametrize("copied", [
    torch.clone, torch.empty_like, torch.zeros_like, torch.rand_like, lambda x: x.double(),
    lambda x: x.to(torch.float32, copy=True), lambda x: x.to("meta"),
    lambda x: torch.full_like(x, 2, dtype=torch.int8)])
@pytest.mark.parametrize("size, strides", [
    ((2, 1, 4, 4), (16, 1, 4, 1)), ((4, 3, 1, 1), (3, 1, 3, 3)), ((5, 1), (1, 7)),
    ((2, 3, 1), (1, 2, 50)), ((2, 3, 1, 4), (12, 4, 9, 1))])
def test_copies_keep_the_strides_of_dimensions_of_one_element(copied, size, strides):
    x = torch.arange(64.0).as_strided(size, strides)
    assert copied(x).stride() == strides
    assert torch.equal(x.clone(), x)
    assert torch.empty_like(x, memory_format=torch.contiguous_format).stride() != strides


def test_images_of_one_channel_keep_their_channels_last():
    x = torch.ones(2, 1, 4, 4).to(memory_format=torch.channels_last)
    assert x.clone().stride() == (16, 1, 4, 1)
    weight = torch.nn.Conv2d(1, 8, 3).to(memory_format=torch.channels_last).weight
    assert torch.nn.functional.conv2d(torch.randint_like(x, 3), weight.data).is_contiguous(
        memory_format=torch.channels_last)

"""Tensors on `meta`: geometry without values, and without memory."""
import resource

import pytest

import flambeau
from flambeau import nn
from flambeau.nn import functional as F


def meta(*shape, **options):
    return flambeau.empty(*shape, device="meta", **options)


def test_strides_and_offsets_are_those_of_memory():
    x = meta(2, 3, 4, 5)
    assert x.stride() == (60, 20, 5, 1) and x.is_contiguous()
    assert x.transpose(1, 2).stride() == (60, 5, 20, 1)
    assert x[1, :, ::2].storage_offset() == 60 and x[1, :, ::2].stride() == (20, 10, 1)
    assert x.untyped_storage().nbytes() == 480 and x.data_ptr() == 0
    assert x[0]._base is x
    last = x.to(memory_format=flambeau.channels_last)
    assert (last + 1).stride() == flambeau.empty_like(last).stride() == (60, 1, 15, 3)
    assert last.is_contiguous(memory_format=flambeau.channels_last)
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        x.transpose(0, 1).view(-1)


def test_like_on_another_device():
    x = meta(3)
    assert flambeau.zeros_like(x, device="cpu").tolist() == [0, 0, 0]
    assert flambeau.zeros_like(flambeau.ones(3), device="meta").is_meta


def test_nothing_of_the_size_is_computed():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tokens, width = 1 << 20, 1 << 14
    x = meta(tokens, width, requires_grad=True)         # 64 GiB
    weight = meta(width, width, requires_grad=True)
    norm = F.layer_norm(F.gelu(F.linear(x, weight)), (width,))
    loss = F.cross_entropy(norm * 2 + x, meta(tokens, dtype=flambeau.int64).zero_())
    assert loss.shape == () and loss.is_meta
    heads = meta(512, 64, 4096, 128)
    assert F.scaled_dot_product_attention(heads, heads, heads).shape == heads.shape
    pixels = meta(1024, 64, 512, 512)
    found = F.conv2d(pixels, meta(128, 64, 3, 3), padding=1).to(flambeau.bfloat16)
    assert found.shape == (1024, 128, 512, 512) and found.dtype is flambeau.bfloat16
    assert meta(10 ** 12).sum().shape == ()
    x.mul(weight[0]).sum(0).softmax(-1).sum().backward()
    assert x.grad.shape == x.shape and x.grad.is_meta
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 300_000, f"{grown} kB"


def test_history():
    x = meta(3, 4, requires_grad=True)
    y = x * 2
    y.mul_(3)
    assert type(y.grad_fn).__name__ == "MulBackward0"
    assert y.exp().grad_fn._saved_result.is_meta
    y[0].exp_()
    assert type(y.grad_fn).__name__ == "CopySlices"
    y.sum().backward()
    assert x.grad.is_meta and x.grad.shape == (3, 4)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="single memory location"):
        meta(1).expand(3).add_(1)
    z = meta(3, requires_grad=True) * 1
    kept = z.exp()
    z.add_(1)
    kept.sum().backward()
    wrong = z.sin()
    z.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        wrong.sum().backward()


@pytest.mark.parametrize("rule", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_optimisers_step(rule):
    model = nn.Linear(300, 300, device="meta")
    optimiser = getattr(flambeau.optim, rule)(model.parameters(), lr=0.1)
    for _ in range(2):
        model(meta(2, 300)).sum().backward()
        optimiser.step()
    assert model.weight.is_meta


def test_whole_division_by_nothing():
    """An integer that has no value is not zero."""
    x = meta(3, dtype=flambeau.int64)
    assert (x // x).dtype is flambeau.int64
    assert flambeau.remainder(x, x).shape == flambeau.fmod(x, x).shape == (3,)


def test_a_tensor_may_be_larger_than_what_a_process_can_address():
    x = flambeau.empty(2 * 10**8, 3, 2 * 10**8, device="meta")
    twice = F.interpolate(x, scale_factor=2)
    assert twice.shape == (2 * 10**8, 3, 4 * 10**8)
    out = flambeau.empty(0, device="meta")
    assert flambeau._C._nn.upsample_nearest1d(x, (4 * 10**8,), 2, out=out) is out
    assert out.shape == twice.shape
    assert (x + 1).transpose(0, 1)[0].shape == (2 * 10**8, 2 * 10**8)
    with pytest.raises(RuntimeError, match="cannot be called on meta tensors"):
        out[0][0][0].item()


@pytest.mark.parametrize("call", [
    flambeau.mm, flambeau.matmul, lambda a, b: flambeau.addmm(a[0], a, b),
    lambda a, b: flambeau.nn.functional.linear(a, b.mT)])
def test_products_of_unlike_sizes_are_refused_in_the_words_of_meta(call):
    a, b = flambeau.ones(2, 3, device="meta"), flambeau.ones(2, 3, device="meta")
    with pytest.raises(RuntimeError, match=r"reduction dim, but got \[2, 3\] X \[2, 3\]"):
        call(a, b)

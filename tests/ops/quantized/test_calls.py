"""Public functions of quantised tensors: largest elements of windows, normalization."""
import pytest

import flambeau as torch


def numbers(*shape, dtype=torch.quint8):
    x = torch.arange(1.0, 1 + torch.Size(shape).numel()).reshape(shape).sin()
    return torch.quantize_per_tensor(x, 0.05, 30 if dtype is torch.quint8 else 0, dtype)


@pytest.mark.parametrize("dtype", [torch.quint8, torch.qint8, torch.qint32])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_largest_of_windows(n, dtype):
    q = numbers(2, 3, *(4,) * n, dtype=dtype)
    pool, plain = getattr(torch, f"quantized_max_pool{n}d"), getattr(torch, f"max_pool{n}d")
    for rest in (([2] * n,), ([2] * n, [1] * n, [1] * n, [1] * n, True), ([3] * n, [])):
        found = pool(q, *rest)
        assert found.dtype is dtype and found.q_scale() == q.q_scale()
        assert found.q_zero_point() == q.q_zero_point()
        assert found.dequantize().equal(plain(q.dequantize(), *rest))
    with pytest.raises(NotImplementedError, match=f"'aten::quantized_max_pool{n}d' with argum"):
        pool(q.dequantize(), [2] * n)


def test_windows_along_one_dimension_of_integers():
    q = numbers(3, 8)
    assert torch.max_pool1d(q, 2).dequantize().equal(torch.max_pool1d(q.dequantize(), 2))
    last = numbers(2, 3, 4, 4).to(memory_format=torch.channels_last)
    assert torch.quantized_max_pool2d(last, [2, 2]).stride() == (12, 1, 6, 3)


def test_batch_norm():
    q, one, zero = numbers(2, 3, 4, 4), torch.ones(3), torch.zeros(3)
    mean, var = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([1.0, 2.0, 0.5])
    found = torch.quantized_batch_norm(q, one, zero, mean, var, 1e-5, 0.1, 20)
    wanted = torch.nn.functional.batch_norm(q.dequantize(), mean, var, one, zero)
    assert found.q_scale() == 0.1 and found.q_zero_point() == 20
    assert found.dequantize().equal(torch.quantize_per_tensor(
        wanted, 0.1, 20, torch.quint8).dequantize())
    with pytest.raises(RuntimeError, match="Weight must be provided"):
        torch.quantized_batch_norm(q, None, None, mean, var, 1e-5, 0.1, 20)
    with pytest.raises(RuntimeError, match="Expect weight size to match C"):
        torch.quantized_batch_norm(q[0], one, zero, mean, var, 1e-5, 0.1, 20)


@pytest.mark.parametrize("join", [torch.cat, torch.stack, torch.hstack])
def test_joined_tensors_take_the_scale_of_the_first(join):
    x = torch.tensor([1.0, 2.0])
    a, b = (torch.quantize_per_tensor(x, s, z, torch.quint8) for s, z in ((0.1, 3), (0.3, 5)))
    found = join([a, b])
    assert (found.q_scale(), found.q_zero_point()) == (0.1, 3)
    assert found.flatten().int_repr().tolist() == [13, 23, 12, 24]
    with pytest.raises(RuntimeError, match="All dtypes must be the same"):
        torch.cat([a, torch.quantize_per_tensor(x, 0.1, 3, torch.qint8)])

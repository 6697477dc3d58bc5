"""Which parts of a sequence a process has; the orders are PyTorch's."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.distributed.tensor.experimental import _attention as attention
from flambeau.distributed.tensor.experimental._context_parallel._load_balancer import (
    _create_default_load_balancer,
    _HeadTailLoadBalancer,
)
from flambeau.nn.attention.flex_attention import create_block_mask


def test_orders():
    balancer = attention._HeadTailLoadBalancer(16, 4, "cpu")
    assert balancer._generate_indices().tolist() == [
        [0, 1, 14, 15, 2, 3, 12, 13, 4, 5, 10, 11, 6, 7, 8, 9]]
    assert balancer._generate_indices(restore=True).tolist() == [
        [0, 1, 4, 5, 8, 9, 12, 13, 14, 15, 10, 11, 6, 7, 2, 3]]
    documents = attention._PerDocumentHeadTailLoadBalancer([[8, 8], [16]], 2, "cpu")
    assert documents._generate_indices()[0].tolist() == [
        0, 1, 6, 7, 2, 3, 4, 5, 8, 9, 14, 15, 10, 11, 12, 13]
    assert documents._generate_indices(restore=True)[1].tolist() == [
        0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 4, 5, 6, 7]
    schedule = attention._PTRRLoadBalancer.ptrr_scheduling
    assert schedule(torch.tensor([5, 1, 4, 2, 8, 3, 7, 6]), 2).tolist() == [
        [0, 1, 2, 4], [3, 5, 6, 7]]
    assert schedule(torch.tensor([5, 1, 4, 2, 8, 3, 7, 6]), 4).tolist() == [
        [1, 4], [3, 6], [5, 7], [0, 2]]
    mask = create_block_mask(lambda b, h, q, k: q >= k, 1, 1, 16, 16, device="cpu", BLOCK_SIZE=2)
    assert attention._PTRRLoadBalancer(mask, 4)._generate_indices().tolist() == [
        [0, 1, 14, 15, 2, 3, 12, 13, 4, 5, 10, 11, 6, 7, 8, 9]]


@pytest.mark.parametrize(("length", "size"), [(8, 2), (24, 3), (64, 8), (4, 1)])
def test_all_have_as_much_to_do(length, size):
    """Place i attends to i + 1 others."""
    order = _HeadTailLoadBalancer(length, size, "cpu")._generate_indices()[0]
    work = [(part + 1).sum().item() for part in order.chunk(size)]
    assert set(work) == {length * (length + 1) // 2 // size}
    back = _HeadTailLoadBalancer(length, size, "cpu")._generate_indices(restore=True)[0]
    assert torch.equal(order[back].long(), torch.arange(length))


def test_lengths_have_to_fit(monkeypatch):
    with pytest.raises(AssertionError):
        _HeadTailLoadBalancer(6, 2, "cpu")._generate_indices()
    assert isinstance(_create_default_load_balancer(8, 2, "cpu"), _HeadTailLoadBalancer)
    monkeypatch.setattr(attention._cp_options, "enable_load_balance", False)
    assert _create_default_load_balancer(8, 2, "cpu") is None

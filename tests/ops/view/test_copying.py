"""Copies into other tensors: broadcast, converted, counted, and differentiated."""
import pytest

import flambeau as torch


def test_a_copy_broadcasts_and_converts():
    x = torch.zeros(2, 3, dtype=torch.int64)
    assert x.copy_(torch.tensor([1.7, 2.2, -3.9])) is x and x.tolist() == [[1, 2, -3]] * 2
    assert x._version == 1
    with pytest.raises(RuntimeError, match="must match the size"):
        x.copy_(torch.ones(4))


def test_gradients_go_to_the_source_alone():
    x, y = torch.ones(2, 3, requires_grad=True), torch.ones(3, requires_grad=True)
    z = x * 1
    z.copy_(y)
    z.sum().backward()
    assert x.grad.tolist() == [[0.0] * 3] * 2 and y.grad.tolist() == [2.0] * 3


@pytest.mark.filterwarnings("ignore:Casting complex values")
def test_a_complex_number_loses_its_imaginary_part():
    assert torch.zeros(1).copy_(torch.tensor([1 + 2j])).item() == 1


def test_overlapping_memory_is_copied_as_it_was():
    x = torch.arange(5)
    x[1:].copy_(x[:-1].clone())
    assert x.tolist() == [0, 0, 1, 2, 3]


def test_empty_tensors_keep_their_strides():
    turned = torch.zeros(2, 0, 3).transpose(0, 2)
    for like in (turned.clone(), turned.double(), torch.zeros_like(turned), turned.flip(0),
                 turned.sort(0)[0], torch.zeros(0).resize_(3, 0, 2).set_(turned), turned.detach()):
        assert like.stride() == turned.stride() == (1, 3, 3)
    last = torch.zeros(0, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    assert last.stride() == (60, 1, 15, 3) and last.is_contiguous()
    assert not torch.zeros(0, 3, 4, 5).is_contiguous(memory_format=torch.channels_last)
    assert (turned * torch.zeros(())).stride() == (1, 3, 0)     # the order is that of operands
    assert turned.exp().stride() == (2, 2, 1)                   # of one shape: a new tensor's
    assert torch.zeros(2, 3).nonzero().stride() == (1, 0)

"""Sizes that no memory has, and lists without an end: PyTorch's errors."""

import pytest

import flambeau as torch

ENDLESS = []
ENDLESS.append(ENDLESS)


@pytest.mark.parametrize("make, sizes", [
    (lambda: torch.zeros(2 ** 40, 2 ** 40), f"[{2 ** 40}, {2 ** 40}]"),
    (lambda: torch.empty((2 ** 62, 4)), f"[{2 ** 62}, 4]"),
    (lambda: torch.rand(2 ** 40, 2 ** 40), f"[{2 ** 40}, {2 ** 40}]"),
], ids=["zeros", "empty", "rand"])
def test_sizes_whose_product_overflows(make, sizes):
    with pytest.raises(RuntimeError) as error:
        make()
    assert str(error.value) == f"Storage size calculation overflowed with sizes={sizes}"


BIG = 2 ** 62


@pytest.mark.parametrize("make", [
    lambda x: x.expand(BIG, 4), lambda x: x.expand((2 ** 40, 2 ** 40)),
    lambda x: x.broadcast_to((BIG, 4)), lambda x: torch.broadcast_to(x, (BIG, 4)),
    lambda x: x.expand(2 ** 40).unsqueeze(1).expand(-1, 2 ** 40),
    lambda x: x.as_strided((BIG, 4), (0, 0))])
def test_views_of_more_elements_than_there_are_numbers(make):
    with pytest.raises(RuntimeError, match=r"^numel: integer multiplication overflow$"):
        make(torch.ones(1))


def test_views_of_more_bytes_than_numpy_can_address():
    with pytest.raises(RuntimeError, match=r"^Storage size calculation overflowed with sizes="):
        torch.ones(1).expand(2 ** 61)


@pytest.mark.parametrize("make", [
    lambda: torch.ones(2 ** 50), lambda: torch.empty(2 ** 50), lambda: torch.rand(2 ** 50),
    lambda: torch.ones(4).repeat(2 ** 48)], ids=["ones", "empty", "rand", "repeat"])
def test_out_of_memory(make):
    with pytest.raises(RuntimeError) as error:
        make()
    assert str(error.value) == (
        "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: "
        f"you tried to allocate {2 ** 52} bytes. Error code 12 (Cannot allocate memory)")


@pytest.mark.parametrize("make", [
    torch.tensor, torch.as_tensor, torch.asarray, torch.Tensor, torch.LongTensor,
    torch.zeros(3).new_tensor], ids=lambda make: getattr(make, "__name__", ""))
def test_a_list_that_holds_itself_is_no_tensor(make):
    with pytest.raises(ValueError, match="too many dimensions 'list'"):
        make(ENDLESS)


def test_a_list_that_holds_itself_elsewhere():
    x = torch.zeros(3)
    with pytest.raises(TypeError, match="self-referential lists are incompatible"):
        x[ENDLESS] = 1
    with pytest.raises(TypeError, match="self-referential lists are incompatible"):
        x[ENDLESS]
    with pytest.raises(TypeError, match=r"can't assign a list to a torch\.FloatTensor"):
        x[0] = ENDLESS
    with pytest.raises(TypeError, match="expected Tensor as element 0 in argument 0, but got list"):
        torch.block_diag(ENDLESS)

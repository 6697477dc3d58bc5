"""What is said where there is no memory."""
import numpy as np
import pytest

import flambeau as torch
from flambeau.dispatch.memory_errors import too_large


@pytest.mark.parametrize("call, said", [
    (lambda: torch.zeros(2 ** 40, 2 ** 40), "Storage size calculation overflowed with sizes="),
    (lambda: torch.empty(2 ** 62), "Storage size calculation overflowed with sizes="),
    (lambda: torch.zeros(0, 2 ** 62, 2 ** 62), "Stride calculation overflowed"),
])
def test_sizes_that_no_number_of_bytes_can_say(call, said):
    with pytest.raises(RuntimeError) as error:
        call()
    assert str(error.value).startswith(said)


def test_memory_that_there_is_not():
    with pytest.raises(RuntimeError, match=r"DefaultCPUAllocator: can't allocate memory: you tried "
                                           r"to allocate 4503599627370496 bytes"):
        torch.empty(2 ** 50)


def test_other_errors_are_left_alone():
    assert too_large((torch.ones(1),), ValueError("something else")) is None
    assert too_large((), MemoryError()) is None


def test_views_count_their_elements():
    x = torch.ones(3)
    error = too_large((x, (2 ** 62, -1)), ValueError("array is too big; …"))
    assert "integer multiplication overflow" in str(error)
    assert isinstance(too_large((np.int64(3), 4), ValueError("array is too big")), RuntimeError)


@pytest.mark.parametrize("call", [
    lambda x: x.reshape((1,) * 65), lambda x: x.view((1,) * 65), lambda x: x.expand((1,) * 65),
    lambda x: x.repeat((1,) * 65), lambda x: x.unflatten(0, (1,) * 65),
    lambda x: x.view((1,) * 64).unsqueeze(0), lambda x: x.view((1,) * 64).unfold(0, 1, 1),
    lambda x: torch.zeros((1,) * 65), lambda x: torch.broadcast_to(x, (1,) * 65),
    lambda x: torch.rand((1,) * 65), lambda x: torch.full((1,) * 65, 2.0)])
def test_more_dimensions_than_arrays_have(call):
    with pytest.raises(NotImplementedError, match="tensors of more than 64 dimensions"):
        call(torch.ones(1))

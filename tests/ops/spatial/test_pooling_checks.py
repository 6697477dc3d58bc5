"""What pooling requires of its arguments."""
import pytest

import flambeau as torch

F = torch.nn.functional
x = torch.rand(1, 2, 6, 6)


@pytest.mark.parametrize("call,said", [
    (lambda: F.max_pool2d(x, 0), "stride should not be zero"),
    (lambda: F.max_pool2d(x, 2, padding=2), "at most half of effective kernel size|half of"),
    (lambda: F.max_pool2d(x, 2, dilation=0), "dilation should be greater than zero"),
    (lambda: F.avg_pool2d(x, 2, padding=2), "at most half|half of"),
    (lambda: F.avg_pool2d(x, 9), "Output size is too small"),
    (lambda: F.avg_pool2d(x, 2, divisor_override=0), "divisor must be not zero"),
    (lambda: F.max_pool2d(x[0, 0], 2), r"Expected 3D or 4D|non-empty 3D or 4D"),
    (lambda: F.max_pool2d(x, (2, 2, 2)), "single int, or a tuple of two ints"),
    (lambda: F.adaptive_avg_pool2d(x, (-1, 2)), "greater than or equal to 0")])
def test_refusals(call, said):
    with pytest.raises(RuntimeError, match=said):
        call()


def test_one_number_stands_for_all_axes():
    assert torch.equal(F.max_pool2d(x, 2), F.max_pool2d(x, (2, 2), (2, 2), (0, 0), (1, 1)))
    assert F.avg_pool2d(x, 3, ceil_mode=True, stride=2).shape == (1, 2, 3, 3)

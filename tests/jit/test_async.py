"""`fork` and `wait`."""
import pytest

import flambeau as torch


def test_a_call_and_its_value():
    future = torch.jit.fork(lambda x, by=2: x * by, torch.ones(2), by=3)
    assert isinstance(future, torch._C.Future)
    assert torch.jit.wait(future).tolist() == [3, 3]
    nested = torch.jit.fork(lambda: torch.jit.wait(torch.jit.fork(lambda: 5)))
    assert torch.jit.wait(nested) == 5


def test_what_is_refused():
    with pytest.raises(TypeError, match="'int' is not an instance of 'function'"):
        torch.jit.fork(3)
    with pytest.raises(TypeError, match=r"wait\(\): incompatible function arguments"):
        torch.jit.wait(3)
    with pytest.raises(ZeroDivisionError):
        torch.jit.wait(torch.jit.fork(lambda: 1 / 0))

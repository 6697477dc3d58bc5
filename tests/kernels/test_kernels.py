"""What runs: threads, the choice of kernels, denormal numbers."""
import numpy as np
import pytest

from flambeau import kernels


def test_threads_are_checked():
    before = kernels.get_num_threads()
    for wrong, message in ((True, "expects an int, but got bool"), (1.5, "but got float"),
                           (0, "expects a positive integer"), (-1, "expects a positive integer")):
        with pytest.raises(RuntimeError, match=message):
            kernels.set_num_threads(wrong)
    with pytest.raises(ValueError, match="Overflow when unpacking long"):
        kernels.set_num_threads(2**31)
    assert kernels.get_num_threads() == before


def test_what_runs_is_described():
    found = kernels.describe()
    assert found["native"] is kernels.native_available and found["threads"] >= 1
    assert found["kernels"] == ("native" if kernels.native_available else "reference")


def test_denormal_numbers_can_be_taken_as_zero():
    tiny = np.full(64, 1e-310)
    if not kernels.set_flush_denormal(True):
        pytest.skip("this processor keeps denormal numbers")
    try:
        assert not kernels.multiply(tiny, np.ones(64)).any()
    finally:
        kernels.set_flush_denormal(False)
    assert kernels.multiply(tiny, np.ones(64)).all()


def test_cited_names_change_nothing_else():
    @kernels.set_error_name("torch.Something")
    class Something:
        pass
    assert Something.__name__ == "Something"

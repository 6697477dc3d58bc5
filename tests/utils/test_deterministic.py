"""Memory that a program has not written, while deterministic algorithms are wanted."""
import pytest

import flambeau
from flambeau.utils import deterministic

TYPES = (flambeau.float32, flambeau.bfloat16, flambeau.complex64, flambeau.int8, flambeau.uint8,
         flambeau.int64, flambeau.bool)
MAKERS = {
    "empty": lambda dtype: flambeau.empty(3, 2, dtype=dtype),
    "empty_like": lambda dtype: flambeau.empty_like(flambeau.zeros(3, dtype=dtype)),
    "new_empty": lambda dtype: flambeau.zeros(1).new_empty(3, dtype=dtype),
    "empty_strided": lambda dtype: flambeau.empty_strided((3, 2), (1, 4), dtype=dtype),
    "empty_permuted": lambda dtype: flambeau.empty_permuted((3, 2), (1, 0), dtype=dtype),
    "resize_": lambda dtype: flambeau.ones(2, dtype=dtype).resize_(5)[2:],
    "resize_ of none": lambda dtype: flambeau.ones(0, dtype=dtype).resize_(3),
}


@pytest.fixture(autouse=True)
def as_before():
    yield
    flambeau.use_deterministic_algorithms(False)
    deterministic.fill_uninitialized_memory = True


def is_filled(x):
    if x.is_floating_point() or x.is_complex():
        return bool(x.isnan().all())
    return bool((x == (True if x.dtype is flambeau.bool else flambeau.iinfo(x.dtype).max)).all())


@pytest.mark.parametrize("maker", MAKERS)
def test_new_memory_is_filled(maker):
    flambeau.use_deterministic_algorithms(True)
    assert all(is_filled(MAKERS[maker](dtype)) for dtype in TYPES)
    assert is_filled(flambeau.Tensor(3))


@pytest.mark.parametrize("maker", ["resize_", "resize_ of none"])
def test_it_is_not_filled_if_that_is_not_wanted(maker):
    assert not is_filled(MAKERS[maker](flambeau.float32))
    flambeau.use_deterministic_algorithms(True)
    deterministic.fill_uninitialized_memory = False
    assert not is_filled(MAKERS[maker](flambeau.float32))


@pytest.mark.parametrize("name", ["max_unpooling2d_forward_out", "put_", "quantized_resize_cpu_"])
def test_what_pytorch_calls_nondeterministic_alerts(name):
    image, places = flambeau.ones(1, 1, 2, 2), flambeau.zeros(1, 1, 2, 2, dtype=flambeau.int64)
    call = {
        "max_unpooling2d_forward_out":
            lambda: flambeau.nn.functional.max_unpool2d(image, places, 2),
        "put_": lambda: flambeau.zeros(3).put_(flambeau.tensor([0]), flambeau.tensor([1.0])),
        "quantized_resize_cpu_": lambda: flambeau.quantize_per_tensor(
            flambeau.zeros(3), 0.1, 10, flambeau.quint8).resize_(10)}[name]
    call()
    flambeau.use_deterministic_algorithms(True)
    with pytest.raises(RuntimeError, match=f"^{name} does not have a deterministic implementation"):
        call()
    flambeau.use_deterministic_algorithms(True, warn_only=True)
    with pytest.warns(UserWarning, match=f"^{name} does not have a deterministic implementation"):
        call()


def test_the_switch_is_a_bool():
    try:
        deterministic.fill_uninitialized_memory = False
        assert deterministic.fill_uninitialized_memory is False
    finally:
        deterministic.fill_uninitialized_memory = True
    with pytest.raises(RuntimeError, match="expected a bool, but got int"):
        deterministic.fill_uninitialized_memory = 3

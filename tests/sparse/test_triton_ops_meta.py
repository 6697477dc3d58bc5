"""Parameters of kernels are found by trying, and remembered."""

import pytest

from flambeau.sparse import _triton_ops_meta as meta


def test_the_search_ends_at_a_minimum_and_what_it_finds_is_remembered():
    found, gain, least, _ = meta.minimize(
        lambda p: (p["a"] - 3) ** 2 + p["b"] ** 2 + 1, {"a": 0, "b": 2}, {"a": 0, "b": 0},
        lambda name, value, step, parameters: value + step)
    assert (found, gain, least) == ({"a": 3, "b": 0}, 90, 1)
    meta.update("bsr_dense_addmm", "cpu", (0,), (1, 2), (4, 3, 2, 1))
    assert meta.get_meta("bsr_dense_addmm", (1, 2), version=(0,))["num_warps"] == 1
    assert list(meta.get_meta("bsr_dense_addmm", ("*", 2), version=(0,))) == [(1, 2)]
    assert meta.get_meta("bsr_dense_addmm", (1, 3), version=(0,)) is None
    with pytest.raises(NotImplementedError, match="names for op"):
        meta.get_meta("mm", (1,))

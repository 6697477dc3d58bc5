"""How attention over shared sequences is computed."""
import pytest

from flambeau.distributed.tensor.experimental import _attention as attention


def test_keys_that_come_later_are_skipped_or_halved(monkeypatch):
    def row(rank, causal=True):
        return [attention._is_causal_behavior(rank, 3, i, causal).name for i in range(3)]
    monkeypatch.setattr(attention._cp_options, "enable_load_balance", False)
    assert row(0) == ["IS_CAUSAL", "SKIP", "SKIP"]
    assert row(2) == ["IS_CAUSAL", "NOT_IS_CAUSAL", "NOT_IS_CAUSAL"]
    assert row(0, causal=False) == ["NOT_IS_CAUSAL"] * 3
    monkeypatch.setattr(attention._cp_options, "enable_load_balance", True)
    assert row(0) == row(2)


@pytest.mark.parametrize(("name", "method"), [("alltoall", "ALL_TO_ALL"),
                                              ("allgather", "ALL_GATHER")])
def test_rotations(name, method):
    before = attention._cp_options.rotate_method
    try:
        attention.set_rotate_method(name)
        assert attention._cp_options.rotate_method.name == method
    finally:
        attention._cp_options.rotate_method = before
    with pytest.raises(NotImplementedError, match="does not support using zz for kv shards"):
        attention.set_rotate_method("zz")

import pytest

from flambeau import backends


def test_switches_can_be_frozen(monkeypatch):
    monkeypatch.setattr(backends, "_frozen", False)
    before = backends.cudnn.benchmark
    backends.disable_global_flags()
    assert backends.flags_frozen()
    with pytest.raises(RuntimeError, match=r"not allowed to set torch\.backends\.cudnn flags after "
                                           "disable_global_flags"):
        backends.cudnn.benchmark = True
    with backends.cudnn.flags(benchmark=True):
        assert backends.cudnn.benchmark
    with vars(backends)["__allow_nonbracketed_mutation"]():
        backends.cudnn.benchmark = before
    assert backends.flags_frozen() and backends.cudnn.benchmark == before

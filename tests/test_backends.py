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


def test_switches_are_arguments_by_name():
    before = backends.cudnn.benchmark, backends.cudnn.deterministic
    with backends.cudnn.flags(benchmark=True):
        assert backends.cudnn.benchmark is True
    assert (backends.cudnn.benchmark, backends.cudnn.deterministic) == before
    for call in (backends.cudnn.flags, backends.mkldnn.set_flags, backends.openmp.is_available):
        with pytest.raises(TypeError, match=rf"^{call.__name__}\(\) got an unexpected keyword"):
            call(other=1)
    with pytest.raises(RuntimeError, match="set_enabled_cudnn expects a bool, but got list"):
        backends.cudnn.flags(enabled=[]).__enter__()

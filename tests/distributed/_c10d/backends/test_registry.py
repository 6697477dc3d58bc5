"""Names of backends, and which of them serves which type of device."""
from __future__ import annotations

import pytest

from flambeau import distributed as dist


def test_names():
    assert dist.Backend("GLOO") == "gloo" and dist.Backend.NCCL == "nccl"
    with pytest.raises(ValueError, match="string-ish"):
        dist.Backend(3)
    assert repr(dist.ReduceOp.SUM) == "<RedOpType.SUM: 0>"
    assert not dist.supports_complex(dist.ReduceOp.MAX)


def test_devices_of_backends():
    assert repr(dist.BackendConfig("cpu:gloo,cuda:GLOO")) == "cpu:gloo,cuda:gloo"
    assert dist.BackendConfig("gloo").get_device_backend_map() == {"cpu": "gloo", "cuda": "gloo"}
    with pytest.raises(ValueError, match=r"Duplicate device type cpu\s+in backend string"):
        dist.BackendConfig("cpu:gloo,cpu:nccl")
    with pytest.raises(ValueError, match="Custom backend string is an experimental feature"):
        dist.BackendConfig("cpu:gloo:x")


def test_unknown_devices_are_guessed():
    with pytest.warns(UserWarning, match="Device capability of newone unknown"):
        config = dist.BackendConfig("newone")
    assert config.get_device_backend_map() == dict.fromkeys(("cpu", "cuda", "xpu"), "newone")


def test_what_is_there():
    assert dist.is_gloo_available() and not dist.is_nccl_available()
    assert not dist.is_ucc_available() and not dist.is_xccl_available()
    assert dist.is_backend_available("cpu:gloo") and not dist.is_backend_available("nccl")
    assert not dist.is_backend_available("of_nobody")
    with pytest.raises(ValueError, match="Default backend not registered for device : meta"):
        dist.get_default_backend_for_device("meta")
    assert dist.get_default_backend_for_device("cuda:1") == "nccl"


def test_started_by_torchelastic(monkeypatch):
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    assert not dist.is_torchelastic_launched()
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "1")
    assert dist.is_torchelastic_launched()


def test_backends_can_be_registered_again():
    backend = dist.Backend
    backend.register_backend("mine_for_cpus", lambda *args: None, devices="cpu")
    try:
        assert backend.MINE_FOR_CPUS == "mine_for_cpus" == backend("Mine_For_CPUs")
        assert backend.backend_capability["mine_for_cpus"] == ["cpu"]
        assert dist.is_backend_available("mine_for_cpus")
        with pytest.warns(UserWarning, match="Device capability of mine_for_cpus unspecified"):
            backend.register_backend("mine_for_cpus", print)
        assert backend._plugins["MINE_FOR_CPUS"].creator_fn is print
        assert backend.backend_capability["mine_for_cpus"] == ["cpu", "cuda"]
    finally:
        del backend.MINE_FOR_CPUS, backend._plugins["MINE_FOR_CPUS"]
        backend.backend_list.remove("mine_for_cpus")

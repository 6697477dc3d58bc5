"""Transports by name."""
from __future__ import annotations

import pytest

from flambeau.distributed import rpc
from flambeau.distributed.rpc import backend_registry as registry


def test_the_one_that_is_there():
    assert repr(rpc.BackendType.TENSORPIPE) == "BackendType.TENSORPIPE"
    assert registry.backend_registered("TENSORPIPE") and not registry.backend_registered("x")
    made = registry.construct_rpc_backend_options(rpc.BackendType.TENSORPIPE, rpc_timeout=3)
    assert made.rpc_timeout == 3 and made.init_method == "env://"


def test_of_the_user():
    kept = registry.BackendType
    try:
        own = registry.register_backend("OWN", lambda timeout, url, more: (timeout, url, more),
                                        lambda *args, **kwargs: (args, kwargs))
        assert repr(own) == "BackendType.OWN" and registry.backend_registered("OWN")
        assert registry.construct_rpc_backend_options(own, 3, "x", more=5) == (3, "x", 5)
        assert registry.init_backend(own, 1, a=2) == ((1,), {"a": 2})
        with pytest.raises(RuntimeError, match="RPC backend OWN: already registered"):
            registry.register_backend("OWN", None, None)
        assert registry.backend_registered("TENSORPIPE")
    finally:
        registry.BackendType = kept
        if hasattr(registry, "_values"):
            registry._values.pop("OWN", None)


def test_what_is_refused():
    from flambeau.distributed import HashStore
    with pytest.raises(TypeError, match="`store` must be a c10d::Store"):
        registry.init_backend(rpc.BackendType.TENSORPIPE, store=3, name="a", rank=0, world_size=1,
                              rpc_backend_options=rpc.TensorPipeRpcBackendOptions())
    with pytest.raises(TypeError, match="`rpc_backend_options` must be a"):
        registry.init_backend(rpc.BackendType.TENSORPIPE, store=HashStore(), name="a", rank=0,
                              world_size=1, rpc_backend_options=3)

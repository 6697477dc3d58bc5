"""Backends of `torch.compile`, by name."""
import pytest

import flambeau as torch
from flambeau._dynamo.backends.registry import (
    _BACKENDS,
    list_backends,
    lookup_backend,
    register_backend,
)


def test_backends_have_names():
    def mirror_backend(gm, example_inputs):
        return lambda *args: "compiled"
    try:
        assert register_backend(mirror_backend) is mirror_backend
        assert lookup_backend("mirror_backend") is mirror_backend
        register_backend(name="mirror_other", tags=("debug",))(mirror_backend)
        assert lookup_backend("mirror_other") is mirror_backend
    finally:
        _BACKENDS.pop("mirror_backend", None), _BACKENDS.pop("mirror_other", None)
    assert lookup_backend(mirror_backend) is mirror_backend


def test_the_program_as_it_is():
    module = torch.fx.symbolic_trace(lambda x: -x)
    assert lookup_backend("eager")(module, [])(3) == -3
    assert "inductor" in list_backends()


def test_unknown_names():
    with pytest.raises(RuntimeError, match=r"Invalid backend: 'abacus', see `torch._dynamo"):
        lookup_backend("abacus")

"""Which forward functions a remote module gets."""
import pytest

import flambeau as torch
from flambeau.distributed.nn.jit import instantiator


@torch.jit.interface
class OfTwo:
    def forward(self, x: torch.Tensor, n: int = 3) -> torch.Tensor:
        pass


def test_arguments():
    names, types, returned = instantiator.get_arg_return_types_from_interface(OfTwo)
    assert names == "x, n" and types.startswith("x: ") and "n: int" in types
    assert returned.endswith("Tensor")
    with pytest.raises(AssertionError, match="Expect a TorchScript class interface decorated by"):
        instantiator.get_arg_return_types_from_interface(dict)


def test_functions():
    found = instantiator.instantiate_non_scriptable_remote_module_template()
    assert [f.__name__ for f in found._generated_methods] == ["forward_async", "forward"]


def test_functions_of_an_interface():
    with pytest.raises(ValueError, match=r"must be a type object decorated by @torch\.jit"):
        instantiator.instantiate_scriptable_remote_module_template(dict)

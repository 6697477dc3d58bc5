"""What is known of modules that would be compiled."""
import pytest

import flambeau as torch
from flambeau.jit import _recursive


def test_modules_have_to_be_initialized():
    class Bare(torch.nn.Module):
        def __init__(self):
            pass
    with pytest.raises(RuntimeError, match=r"Bare' has not been initialized, did you forget to "
                                           r"call 'super\(\)'\?"):
        _recursive.check_module_initialized(Bare())
    with pytest.raises(RuntimeError, match=r"nn\.modules\.linear\.LazyLinear' has "
                                           "uninitialized parameters weight. Did you forget to "
                                           "run a forward pass"):
        _recursive.check_module_initialized(torch.nn.LazyLinear(2))
    _recursive.check_module_initialized(torch.nn.Linear(1, 1))


def test_members():
    class Model(torch.nn.Module):
        kept: int
        __jit_ignored_attributes__ = ["p", "kept"]

        @property
        def p(self): ...
    assert _recursive.get_annotations(Model)["kept"] in (int, "int")
    assert _recursive.jit_ignored_properties(Model()) == {"p"}
    assert "_parameters" in _recursive.ignored_attributes

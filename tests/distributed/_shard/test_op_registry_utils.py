"""Tables of functions that stand for ops."""
import pytest

import flambeau as torch
from flambeau.distributed._shard.op_registry_utils import _decorator_func, _register_op


def test_functions_of_four_arguments():
    table = {}

    def four(types, args, kwargs, process_group):
        """Adds."""
    _register_op(torch.add, four, table)
    assert table == {torch.add: four}
    with pytest.raises(TypeError, match=r"expects signature: \(types, args, kwargs, "
                                        r"process_group\), but received signature: \(a, b\)"):
        _register_op(torch.mul, lambda a, b: None, table)
    assert torch.mul not in table


def test_a_registered_function_has_its_arguments_checked():
    table = {}

    def four(types, args, kwargs, process_group):
        """Adds."""
    made = _decorator_func(four, torch.add, table)
    assert table[torch.add] is made and made.__doc__ == "Adds."
    with pytest.raises(TypeError, match=r"torch function 'add'.* without any distributed tensor"):
        made((), (torch.ones(2),), None, None)

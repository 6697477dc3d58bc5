"""TorchScript's intermediate representation is not there."""
import pytest

from flambeau.jit import _intermediate


@pytest.mark.parametrize(("name", "given"), [("parse_ir", "graph(): return ()"),
                                             ("parse_type_comment", "# type: (int) -> int")])
def test_calls_say_so(name, given):
    function = getattr(_intermediate, name)
    with pytest.raises(NotImplementedError, match=f"{name}: TorchScript's intermediate"):
        function(given)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        function(3)

"""When activations are quantised."""
import pytest

from flambeau.ao.quantization import QuantType


@pytest.mark.parametrize(("name", "number"), [("DYNAMIC", 0), ("STATIC", 1), ("QAT", 2),
                                              ("WEIGHT_ONLY", 3)])
def test_numbers(name, number):
    assert QuantType[name] == number and QuantType(number).name == name

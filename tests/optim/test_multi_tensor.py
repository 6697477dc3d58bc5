"""The optimisers with `foreach=True`."""
import pytest

import flambeau as torch
from flambeau.optim import _multi_tensor


@pytest.mark.parametrize("name", ["ASGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam",
                                  "RAdam", "RMSprop", "Rprop", "SGD"])
def test_classes(name):
    optimizer = getattr(_multi_tensor, name)([torch.ones(1)], lr=0.5)
    assert optimizer.param_groups[0]["foreach"] is True
    assert isinstance(optimizer, getattr(torch.optim, name))


def test_the_option_stays_given():
    with pytest.raises(TypeError, match="unexpected keyword argument 'nothing'"):
        _multi_tensor.SGD([torch.ones(1)], nothing=1)
    assert _multi_tensor.SGD([torch.ones(1)], foreach=False).param_groups[0]["foreach"] is False


def test_a_class_with_some_arguments_given():
    class Pair:
        def __init__(self, a, b):
            self.values = (a, b)

    kind = _multi_tensor.partialclass(Pair, b=2)
    assert kind(1).values == (1, 2) and issubclass(kind, Pair)

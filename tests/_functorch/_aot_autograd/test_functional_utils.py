"""Functional tensors of tensors, and back."""
import pytest

import flambeau as torch
from flambeau._functorch._aot_autograd import functional_utils as utils
from flambeau._subclasses.functional_tensor import FunctionalTensorMode
from flambeau.fx.experimental.proxy_tensor import make_fx


def test_there_and_back():
    x = torch.ones(2)
    with FunctionalTensorMode():
        functional = utils.to_fun(x)
        assert utils.is_fun(functional) and not utils.is_fun(x)
        assert utils.to_fun(3) == 3 and utils.from_fun("a") == "a"
        assert not utils.has_data_mutation(functional)
        functional.add_(1)
        assert utils.has_data_mutation(functional)
        utils.sync_functional_tensor(functional)
        assert utils.from_fun(functional).tolist() == [2, 2]


def test_tensors_that_look_at_memory_alike():
    x = torch.ones(2, 3)
    assert utils.has_same_metadata(x, torch.zeros(2, 3))
    assert utils.has_same_metadata(x, torch.zeros(2, 3).double())
    assert not utils.has_same_metadata(x + 0j, (x + 0j).conj())
    for other in (torch.ones(3, 2).t(), torch.ones(3, 2),
                  torch.ones(7)[1:].view(2, 3)):
        assert not utils.has_same_metadata(x, other)


def test_graphs_that_write():
    pure = make_fx(lambda x: x.sin() + 1)(torch.ones(2))
    assert utils.assert_functional_graph(pure.graph) == 0
    writing = make_fx(lambda x: x.clone().add_(1))(torch.ones(2))
    with pytest.raises(AssertionError, match="to have an entirely functional graph"):
        utils.assert_functional_graph(writing.graph)
    ending = make_fx(lambda x: x.copy_(x + 1))(torch.ones(2))
    assert utils.assert_functional_graph(ending.graph) == 1

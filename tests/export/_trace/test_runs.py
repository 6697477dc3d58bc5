"""Programs whose course depends on sizes or values."""
import pytest
from export_cases import function

import flambeau as torch
from flambeau._dynamo.exc import UserError
from flambeau.export import Dim
from flambeau.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode


def test_courses_that_depend_on_sizes_are_refused():
    def f(x):
        return x + 1 if x.shape[0] > 5 else x - 1
    with pytest.raises(UserError, match=r"Constraints violated \(n\)"):
        function(f, torch.ones(3), dynamic_shapes=({0: Dim("n")},))
    assert function(f, torch.ones(3), dynamic_shapes=({0: Dim("n", max=5)},))


@pytest.mark.parametrize("f", [lambda x: x + 1 if x.sum() > 0 else x - 1,
                               lambda x: x * x.sum().item(), lambda x: x[int(x[0])]])
def test_values_may_not_decide(f):
    with pytest.raises(GuardOnDataDependentSymNode, match="Could not guard on data-dependent"):
        function(f, torch.ones(2))


def test_sizes_that_depend_on_values_stay_in_tensors():
    x = torch.tensor([1.0, -2.0, 3.0])
    module = function(lambda x: x[x > 0].sum(), x).module()
    assert module(torch.tensor([-1.0, 5.0, -1.0])) == 5.0
    with pytest.raises(GuardOnDataDependentSymNode, match="size depends on the values"):
        function(lambda x: x / x[x > 0].shape[0], x)

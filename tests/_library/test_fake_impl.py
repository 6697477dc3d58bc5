"""What a fake implementation may ask for."""
import pytest

import flambeau as torch
from flambeau._subclasses import FakeTensorMode


def test_only_while_it_runs():
    assert torch.library.get_ctx() is None


def test_sizes_that_depend_on_values_need_symbols():
    @torch.library.custom_op("mirror_fake::nonzero", mutates_args=())
    def nonzero(x: torch.Tensor) -> torch.Tensor:
        return x.nonzero()

    @nonzero.register_fake
    def _(x):
        size = torch.library.get_ctx().new_dynamic_size()
        return x.new_empty([size, x.dim()], dtype=torch.int64)
    assert nonzero(torch.tensor([0, 1, 2])).tolist() == [[1], [2]]
    with FakeTensorMode() as mode, pytest.raises(Exception, match=r"nonzero") as error:
        nonzero(mode.from_tensor(torch.ones(2)))
    assert type(error.value).__name__ == "DynamicOutputShapeException"

"""`torch._VF`: the functions below their Python wrappers."""
import pytest

import flambeau as torch
from flambeau import _VF


def test_functions_are_those_of_the_namespace():
    x = torch.tensor([[3.0, 4.0], [0.0, 1.0]])
    assert torch.equal(_VF.tanh(x), torch.tanh(x))
    assert _VF.norm(x[0]).item() == 5.0


def test_unique_dim_sorts_rows_and_counts_them():
    x = torch.tensor([[3, 1], [1, 2], [3, 1]])
    values, inverse, counts = _VF.unique_dim(x, 0, True, True, True)
    assert values.tolist() == [[1, 2], [3, 1]]
    assert torch.equal(values[inverse], x) and counts.tolist() == [1, 2]


def test_recurrent_cells_are_found_there():
    x, h = torch.zeros(1, 2), torch.zeros(1, 3)
    bias = torch.tensor([0.0, 0.5, -0.5])
    out = _VF.rnn_tanh_cell(x, h, torch.zeros(3, 2), torch.zeros(3, 3), bias, bias)
    torch.testing.assert_close(out, torch.tanh(2 * bias)[None])


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="no_such_function"):
        _VF.no_such_function

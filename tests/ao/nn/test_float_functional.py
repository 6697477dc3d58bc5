"""Functions that can be watched and swapped."""
import pytest

import flambeau as torch
from flambeau.ao.nn.quantized import FloatFunctional, FXFloatFunctional

X, Y = torch.tensor([[1.0, -2.0]]), torch.tensor([[3.0, 4.0]])


@pytest.mark.parametrize("cls", [FloatFunctional, FXFloatFunctional])
@pytest.mark.parametrize(("name", "args", "value"), [
    ("add", (X, Y), [[4, 2]]), ("add_scalar", (X, 2.0), [[3, 0]]), ("mul", (X, Y), [[3, -8]]),
    ("mul_scalar", (X, 3.0), [[3, -6]]), ("add_relu", (X, -Y), [[0, 0]]),
    ("cat", ([X, Y], 1), [[1, -2, 3, 4]]), ("matmul", (X, Y.t()), [[-5]])])
def test_values(cls, name, args, value):
    assert getattr(cls(), name)(*args).tolist() == value


def test_results_are_watched():
    seen = []

    class Watch(torch.nn.Module):
        def forward(self, x):
            seen.append(x.tolist())
            return x + 1
    functions = FloatFunctional()
    functions.activation_post_process = Watch()
    assert functions.add(X, Y).tolist() == [[5, 3]] and seen == [[[4, 2]]]
    with pytest.raises(RuntimeError, match="not intended to use the 'forward'"):
        functions(X)

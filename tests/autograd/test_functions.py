"""What is left of the time when ops were Functions."""
import pytest

import flambeau


def test_resize_of_old():
    from flambeau.autograd._functions import Resize
    x = flambeau.ones(2, 3, requires_grad=True)
    y = Resize.apply(x, (6,))
    (y * flambeau.arange(6.)).sum().backward()
    assert x.grad.tolist() == [[0, 1, 2], [3, 4, 5]] and y.grad_fn.name() == "ResizeBackward"
    with pytest.raises(RuntimeError, match=r"requested resize to 5 \(5 elements"):
        Resize.apply(x, (5,))

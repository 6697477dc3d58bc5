"""Calls that neither obey nor change the user's handling of floating-point errors."""
import warnings

import numpy as np

from flambeau.kernels._quiet import quiet


@quiet
def divide(x, y):
    """x over y."""
    return x / y


def test_no_errors_and_no_warnings():
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert divide(np.ones(1), np.zeros(1)).tolist() == [np.inf]
        assert np.geterr()["divide"] == "raise"


def test_an_error_leaves_the_handling_as_it_was():
    before = np.geterr()
    try:
        divide(np.ones(2), np.ones(3))
    except ValueError:
        pass
    assert np.geterr() == before


def test_name_and_text():
    assert divide.__name__ == "divide" and divide.__doc__ == "x over y."
    assert divide.__wrapped__(1.0, 2.0) == 0.5

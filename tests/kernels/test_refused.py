"""What kernels do not take, in PyTorch's words."""
import numpy as np
import pytest

from flambeau.kernels import refused


def test_kinds_of_types():
    assert refused.characters("be") == "?eE"
    with pytest.raises(NotImplementedError, match="\"foo_cpu\" not implemented for 'Bool'"):
        refused.refuse(np.ones(2, bool), "b", "foo_cpu")
    refused.refuse(np.ones(2), "bBil", "foo_cpu")


def test_sentences():
    with pytest.raises(RuntimeError, match="no roots of Long, please"):
        refused.refuse(np.ones(2, np.int64), "l", "no roots of {}, please")


class Op:
    variadic = False

    def __init__(self, *refuses):
        self.refuses = refuses

    @staticmethod
    def kernel(x, *rest):
        return x + 1


def test_kernels_with_what_they_refuse():
    op = Op()
    assert refused.kernel_of(op) is op.kernel
    kernel = refused.kernel_of(Op("foo_cpu", "b"))
    assert kernel(np.zeros(2)).tolist() == [1, 1]
    with pytest.raises(NotImplementedError, match="foo_cpu"):
        kernel(np.zeros(2, bool))
    assert kernel(np.zeros(0, bool)).size == 0          # a kernel that has nothing to do


def test_a_single_element():
    name = refused.unless_one("foo_cpu")
    assert name(np.ones(2)) == "foo_cpu" and name(np.float64(1)) == ""

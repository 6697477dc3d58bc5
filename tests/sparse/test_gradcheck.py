"""`gradcheck` of functions of sparse tensors, by way of their values."""

import pytest

import flambeau as torch

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")
gradcheck = torch.sparse.as_sparse_gradcheck(torch.autograd.gradcheck)
LAYOUTS = [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc]


def matrix(layout):
    dense = torch.tensor([[0, 2.0, 0], [1.5, 0, -3.0]], dtype=torch.float64)
    return dense.to_sparse(layout=layout).requires_grad_()


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_conversions_to_dense(layout, masked):
    assert gradcheck(lambda x: x.to_dense(masked_grad=masked), (matrix(layout),), masked=masked)


def test_products_with_dense_tensors():
    dense = torch.tensor([[1.0], [0.5], [-2.0]], dtype=torch.float64, requires_grad=True)
    assert gradcheck(torch.sparse.mm, (matrix(torch.sparse_coo), dense), masked=True)


def test_a_wrong_gradient_is_found():
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 3

    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        gradcheck(lambda x: Wrong.apply(x.to_dense(masked_grad=True)),
                  (matrix(torch.sparse_coo),), masked=True)


def test_dense_inputs_are_checked_as_ever():
    x = torch.tensor([0.5, -1.0], dtype=torch.float64, requires_grad=True)
    assert gradcheck(torch.sin, x)

"""Structured matrices: solves, determinants, products without forming them."""
# needs: linear_operator
import json

import torch
from linear_operator import settings, to_linear_operator
from linear_operator.operators import (
    BlockDiagLinearOperator,
    DiagLinearOperator,
    KroneckerProductLinearOperator,
    LowRankRootLinearOperator,
    RootLinearOperator,
    ToeplitzLinearOperator,
    TriangularLinearOperator,
)

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
root = torch.randn(6, 2, requires_grad=True)
diagonal = torch.rand(6).add(0.5).requires_grad_()
right = torch.randn(6, 3)
low_rank = LowRankRootLinearOperator(root) + DiagLinearOperator(diagonal)
solution = low_rank.solve(right)
solution.sum().backward()

a, b = (torch.randn(k, k) for k in (2, 3))
a, b = a @ a.mT + torch.eye(2), b @ b.mT + torch.eye(3)
kronecker = KroneckerProductLinearOperator(to_linear_operator(a), to_linear_operator(b))
toeplitz = ToeplitzLinearOperator(torch.tensor([4.0, 1.0, 0.5, 0.2]))
blocks = BlockDiagLinearOperator(to_linear_operator(torch.stack([b, 2 * b])))
triangular = TriangularLinearOperator(torch.linalg.cholesky(b))
with settings.max_cholesky_size(0), settings.cg_tolerance(1e-10):
    iterative = to_linear_operator(kronecker.to_dense()).solve(torch.ones(6, 1))
print(json.dumps({
    "solve": solution.flatten().tolist(),
    "gradients": [root.grad.norm().item(), diagonal.grad.norm().item()],
    "logdet": [low_rank.logdet().item(), kronecker.logdet().item(), blocks.logdet().item()],
    "quadratic": [v.item() for v in kronecker.inv_quad_logdet(torch.ones(6, 1), logdet=True)],
    "toeplitz": (toeplitz @ torch.arange(4.0)).tolist(),
    "diagonal": kronecker.diagonal().tolist(),
    "eigenvalues": kronecker.eigh()[0].sort().values.tolist(),
    "root": RootLinearOperator(root).to_dense().trace().item(),
    "triangular": triangular.solve(torch.ones(3, 1)).flatten().tolist(),
    "cholesky": kronecker.cholesky().to_dense().sum().item(),
    "iterative": iterative.flatten().tolist(),
    "slices": (kronecker[1:4, 2:5].to_dense().sum() + low_rank[0, 1]).item(),
}))

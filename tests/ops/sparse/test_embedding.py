"""Gradients that are sparse: rows of a table, elements by index."""
import flambeau as torch

F = torch.nn.functional


def test_rows_of_a_table():
    table, index = torch.rand(5, 3, requires_grad=True), torch.tensor([1, 1, 4])
    (F.embedding(index, table, sparse=True) * 2).sum().backward()
    assert table.grad.is_sparse and table.grad.shape == (5, 3)
    other = table.detach().clone().requires_grad_()
    (F.embedding(index, other) * 2).sum().backward()
    assert torch.equal(table.grad.to_dense(), other.grad)


def test_elements_by_index():
    x, index = torch.rand(3, 4, requires_grad=True), torch.tensor([[0, 2], [1, 1], [3, 0]])
    torch.gather(x, 1, index, sparse_grad=True).sum().backward()
    other = x.detach().clone().requires_grad_()
    torch.gather(other, 1, index).sum().backward()
    assert x.grad.is_sparse and torch.equal(x.grad.to_dense(), other.grad)

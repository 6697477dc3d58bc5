"""Products with the same right side as one."""
import flambeau as torch
from flambeau import nn
from flambeau.fx.experimental.merge_matmul import are_nodes_independent, merge_matmul


class Products(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 3))

    def forward(self, a, b):
        first = torch.matmul(a, self.weight)
        return first, torch.matmul(b, self.weight), torch.matmul(b, a)


class Chain(nn.Module):
    def forward(self, a, w):
        return torch.matmul(torch.matmul(a, w), w)


def test_independent_products_are_one():
    module, merged = Products(), merge_matmul(Products())
    merged.load_state_dict(module.state_dict())
    assert len(merged.graph.find_nodes(op="call_function", target=torch.matmul)) == 2
    a, b = torch.randn(3, 3), torch.randn(5, 3)
    for found, wanted in zip(merged(a, b), module(a, b), strict=True):
        torch.testing.assert_close(found, wanted)


def test_products_of_products_stay():
    merged = merge_matmul(Chain())
    products = merged.graph.find_nodes(op="call_function", target=torch.matmul)
    assert len(products) == 2 and not are_nodes_independent(products)

"""Graphs, quantised."""
import copy
import operator

import pytest

import flambeau as torch
from flambeau.ao import quantization as Q
from flambeau.ao.quantization import quantize_fx

X = torch.tensor([[-1.0, 0.5, 2.0], [0.25, 3.0, 1.0]])


def test_graphs_are_kept():
    """A lowered graph is copied with its packed weights, which its state holds."""
    from flambeau.ao.quantization.quantize_fx import convert_fx, prepare_fx

    class Affine(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.randn(3, 2))

        def forward(self, x):
            return torch.nn.functional.linear(x, self.w)

    def quantized():
        prepared = prepare_fx(Affine().eval(), Q.get_default_qconfig_mapping(), (X[:, :2],))
        prepared(X[:, :2])
        return convert_fx(prepared)

    first, second = quantized(), quantized()
    assert torch.equal(copy.deepcopy(first)(X[:, :2]), first(X[:, :2]))
    second.load_state_dict(first.state_dict())
    assert torch.equal(second(X[:, :2]), first(X[:, :2]))
    with pytest.raises(AssertionError, match="prepare_fx"):
        convert_fx(torch.fx.symbolic_trace(Affine()))


class Stubs(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.d = Q.QuantStub(), Q.DeQuantStub()
        self.a, self.b = torch.nn.Linear(2, 4), torch.nn.Linear(4, 2)

    def forward(self, x):
        return self.d(self.b(self.a(self.q(x)).flatten(1)))


def test_stubs_are_looked_through_and_flatten_is_floating():
    x = torch.randn(3, 2)
    prepared = quantize_fx.prepare_fx(Stubs().eval(), Q.get_default_qconfig_mapping(), (x,))
    assert not any(n.target in ("q", "d") for n in prepared.graph.nodes)
    prepared(x)
    found = [(n.op, str(n.target)) for n in quantize_fx.convert_fx(prepared).graph.nodes
             if n.op in ("call_method", "call_module")]
    assert found == [("call_module", "a"), ("call_method", "dequantize"),
                     ("call_method", "flatten"), ("call_module", "b"),
                     ("call_method", "dequantize")]


@pytest.mark.parametrize(("function", "watched"), [(torch.matmul, 3), (operator.matmul, 0)])
def test_products_by_the_operator_are_not_quantised(function, watched):
    class Product(torch.nn.Module):
        def forward(self, x, y):
            return function(x, y)
    x = torch.randn(2, 2)
    prepared = quantize_fx.prepare_fx(Product().eval(), Q.get_default_qconfig_mapping(), (x, x))
    assert len([n for n in prepared.graph.nodes if n.op == "call_module"]) == watched


def test_layers_are_fused():
    fused = quantize_fx.fuse_fx(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()).eval())
    assert type(getattr(fused, "0")).__name__ == "LinearReLU"

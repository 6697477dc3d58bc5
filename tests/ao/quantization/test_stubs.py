"""Where a model goes to integers and back."""
import flambeau as torch
from flambeau.ao import quantization as Q


def test_stubs_are_the_identity_until_they_are_converted():
    x = torch.tensor([1.0, -2.0])
    for stub in (Q.QuantStub(), Q.DeQuantStub(Q.default_qconfig)):
        assert stub(x) is x
    assert Q.QuantStub(Q.default_qconfig).qconfig is Q.default_qconfig
    assert not hasattr(Q.QuantStub(), "qconfig")


def test_a_wrapper_converts():
    torch.manual_seed(0)
    linear = torch.nn.Linear(2, 2).eval()
    linear.qconfig = Q.default_qconfig
    wrapped = Q.QuantWrapper(linear)
    assert wrapped.quant.qconfig is Q.default_qconfig
    prepared = Q.prepare(wrapped.eval())
    x = torch.randn(8, 2)
    prepared(x)
    converted = Q.convert(prepared)
    assert [type(m).__name__ for m in converted.children()] == ["Quantize", "DeQuantize", "Linear"]
    assert (converted(x) - linear(x)).abs().max() < 0.05

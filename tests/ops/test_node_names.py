"""Names of nodes that hide or show what an op is made of, as PyTorch's graphs do."""
import pytest

import flambeau as torch
from flambeau import masked
from flambeau._ops import aten

INDEX, MASK = [torch.tensor([0, 1])], torch.tensor([True, False])
STATISTICS = torch.zeros(2), torch.ones(2)


def _x(*shape):
    return torch.rand(shape, requires_grad=True)


@pytest.mark.parametrize(("name", "call"), [
    ("StackBackward0", lambda: torch.combinations(_x(3))),
    ("UnsafeMaskedIndexBackward0", lambda: aten._unsafe_masked_index(_x(2), MASK, INDEX, 0)),
    ("UnsafeMaskedIndexPutAccumulateBackward0",
     lambda: aten._unsafe_masked_index_put_accumulate(_x(2), MASK, INDEX, _x(2))),
    ("NativeDropoutBackwardBackward0", lambda: aten.native_dropout_backward(_x(2), MASK, 2.0)),
    ("SegmentReduceBackward0",
     lambda: torch.segment_reduce(_x(2), "max", lengths=torch.tensor([1, 1]))),
    ("NativeBatchNormLegitBackward0", lambda: aten._native_batch_norm_legit(
        _x(3, 2), None, None, *STATISTICS, True, 0.1, 1e-5)[0]),
    ("NativeBatchNormLegitBackward1", lambda: aten._native_batch_norm_legit(
        _x(3, 2), None, None, True, 0.1, 1e-5)[0]),
    ("NativeBatchNormLegitNoTrainingBackward0", lambda: aten._native_batch_norm_legit_no_training(
        _x(3, 2), None, None, *STATISTICS, 0.1, 1e-5)[0]),
    ("BatchNormWithUpdateBackward0", lambda: aten._batch_norm_with_update(
        _x(3, 2), None, None, *STATISTICS, 0.1, 1e-5)[0]),
    ("DivBackward0", lambda: masked.mean(_x(2))),
    ("DivBackward0", lambda: masked.var(_x(2))),
    ("SqrtBackward0", lambda: masked.std(_x(2), mask=MASK)),
    ("SumBackward0", lambda: _x().sum_to_size(())),
    ("CopyBackwards", lambda: torch.diff(_x(2), n=0)),
    ("CopyBackwards", lambda: torch.linalg.matrix_power(_x(2, 2), 0)),
    ("VdotBackward0", lambda: torch.linalg.vecdot(_x(2), _x(2))),
    ("FftC2CBackward0", lambda: torch.fft.fft2(_x(2, 2))),
    ("ConjBackward0", lambda: torch.fft.ihfft2(_x(2, 2), dim=0)),
    ("ToCopyBackward0", lambda: _x(2, 2, 2, 2).to(memory_format=torch.channels_last)),
    ("ComplexBackward0", lambda: torch.corrcoef(
        torch.rand(2, 3, dtype=torch.complex64, requires_grad=True))),
])
def test_name(name, call):
    assert type(call().grad_fn).__name__ == name


def test_modes_see_the_overload_for_numbers_in_composites():
    """PyTorch's composites call it; Python's operators make tensors of numbers."""
    from flambeau.fx.experimental.proxy_tensor import make_fx
    x = torch.ones(1, 2, 4)
    code = make_fx(lambda t: torch.nn.functional.scaled_dot_product_attention(t, t, t) * 2)(x).code
    assert code.count("aten.mul.Scalar") == 2 and code.count("aten.mul.Tensor") == 1
    code = make_fx(lambda t: (t + 1j).imag)(x).code
    assert "aten.select.int(view_as_real, 3, 1)" in code

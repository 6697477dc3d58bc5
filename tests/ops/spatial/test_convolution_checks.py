"""What convolutions say of types that do not go together."""
import pytest

import flambeau as torch
import flambeau.nn.functional as F


def asked(function, samples, input, weight, bias=None, n=2, **options):
    image = torch.ones((samples, 2) + (4,) * n).to(input)
    kernel = torch.ones((2, 2) + (3,) * n).to(weight)
    given = None if bias is None else torch.full((2,), 0.5).to(bias)
    return function(image, kernel, given, **options)


@pytest.mark.parametrize("function", [F.conv2d, F.conv_transpose2d])
@pytest.mark.parametrize("samples, input, weight, message", [
    (1, torch.float32, torch.float64, "expected scalar type Float but found Double"),
    (2, torch.float32, torch.float64,
     "Input type (torch.FloatTensor) and weight type (torch.DoubleTensor) should be the same or "
     "input should be a MKLDNN tensor and weight is a dense tensor"),
    (2, torch.float32, torch.bfloat16,
     "Input type (torch.FloatTensor) and weight type (CPUBFloat16Type) should be the same or "
     "input should be a MKLDNN tensor and weight is a dense tensor"),
    (2, torch.float64, torch.float32, "expected scalar type Double but found Float"),
    (1, torch.complex64, torch.bfloat16,
     "Input type (CPUComplexFloatType) and weight type (CPUBFloat16Type) should be the same")])
def test_types_of_the_weight(function, samples, input, weight, message):
    with pytest.raises(RuntimeError) as caught:
        asked(function, samples, input, weight)
    assert str(caught.value) == message


def test_a_bias_of_another_type_is_refused_where_padding_is_a_number():
    with pytest.raises(RuntimeError) as caught:
        asked(F.conv2d, 1, torch.float32, torch.float32, torch.float64)
    assert str(caught.value) == "Input type (float) and bias type (double) should be the same"
    for padding, middle in (("same", 18.5), ("valid", 18.5)):
        result = asked(F.conv2d, 1, torch.float32, torch.float32, torch.float64, padding=padding)
        assert result.dtype == torch.float32 and result.max() == middle


def test_a_bias_of_another_type_of_a_transposed_convolution():
    result = asked(F.conv_transpose2d, 1, torch.float32, torch.float32, torch.float64)
    assert result.dtype == torch.float32 and result[0, 0, 0, 0] == 2.5
    for samples, types, message in [
            (2, (torch.float32, torch.float32, torch.float64),
             "Input type (torch.FloatTensor) and bias type (torch.DoubleTensor) should be the same "
             "or input should be a MKLDNN tensor and bias is a dense tensor"),
            (1, (torch.complex64, torch.complex64, torch.float64),
             "Input type (CPUComplexFloatType) and bias type (torch.DoubleTensor) should be the "
             "same"),
            (1, (torch.int64, torch.int64, torch.float64),
             "result type Double can't be cast to the desired output type Long")]:
        with pytest.raises(RuntimeError) as caught:
            asked(F.conv_transpose2d, samples, *types)
        assert str(caught.value) == message
    with pytest.raises(RuntimeError) as caught:
        asked(F.conv_transpose3d, 1, torch.float32, torch.float32, torch.float64, n=3)
    assert str(caught.value) == "expected scalar type Float but found Double"

"""Dtypes as error messages quote them: C++ names, the same wherever one is quoted."""

import pytest

import flambeau as torch

F = torch.nn.functional
NAMES = {torch.int16: "short int", torch.uint8: "unsigned char", torch.int32: "int",
         torch.bool: "bool", torch.float16: "c10::Half"}


@pytest.mark.parametrize("dtype", NAMES, ids=str)
def test_c_names_in_messages(dtype):
    name = NAMES[dtype]
    x, other = torch.ones(1, 2, 2), torch.ones(1, 2, 2).to(dtype)
    with pytest.raises(RuntimeError, match=f"key.dtype: {name} and value.dtype: float instead"):
        F.scaled_dot_product_attention(x, other, x)
    with pytest.raises(RuntimeError, match=f"bias type \\({name}\\) should be the same"):
        F.conv1d(torch.ones(1, 1, 3), torch.ones(1, 1, 1), torch.ones(1).to(dtype))
    with pytest.raises(RuntimeError, match=f"tensor of type {name} to a tensor of type float"):
        torch.ones(2).set_(torch.ones(2).to(dtype))


def test_numbers_that_an_element_cannot_hold():
    names = {torch.int8: "int8_t", torch.int32: "int", torch.float16: "c10::Half",
             torch.float8_e5m2: "c10::Float8_e5m2", torch.bfloat16: "c10::BFloat16"}
    for dtype, name in names.items():
        with pytest.raises(RuntimeError, match=f"to type {name} without overflow"):
            torch.zeros(2).to(dtype).fill_(1e300)
    x = torch.zeros(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="a gradient with dtype 'c10::Float8_e5m2'"):
        x.grad = torch.zeros(2).to(torch.float8_e5m2)

"""Assembler for GPUs: there is none for it."""
import pytest

import flambeau as torch
from flambeau._higher_order_ops.inline_asm_elementwise import inline_asm_elementwise


@pytest.mark.parametrize(("inputs", "error", "message"), [
    ((), ValueError, "requires at least one input tensor"),
    ((torch.ones(2),), RuntimeError, "only supports CUDA tensors")])
def test_what_is_refused(inputs, error, message):
    with pytest.raises(error, match=message):
        inline_asm_elementwise(*inputs, asm_str="mov.f32 $0, $1;", constraints="=f,f",
                               dtype=torch.float32)

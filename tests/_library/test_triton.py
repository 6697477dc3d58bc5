"""Kernels in Triton: there is no GPU for them."""
import pytest

import flambeau as torch
from flambeau._library.triton import get_triton_kernels_for_op, is_wrap_triton_enabled


def test_on_the_cpu_such_an_op_is_its_function():
    @torch.library.triton_op("mirror_triton::axpy", mutates_args=())
    def axpy(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return 2 * a + x
    x = torch.ones(2, requires_grad=True)
    assert axpy(x, x).tolist() == [3, 3]
    assert axpy(x.to("meta"), x.to("meta")).shape == (2,)
    assert str(axpy._opoverload._schema) == "mirror_triton::axpy(Tensor a, Tensor x) -> Tensor"
    assert get_triton_kernels_for_op("mirror_triton::nothing") == []
    assert is_wrap_triton_enabled()


def test_kernels_have_to_be_tritons():
    with pytest.raises(RuntimeError, match="wrap_triton only works on functions annotated with"):
        torch.library.wrap_triton(lambda x: x)

"""What libraries of decompositions ask about types and sizes."""
import pytest

import flambeau as torch
from flambeau import _prims_common as prims

KIND = prims.ELEMENTWISE_TYPE_PROMOTION_KIND


@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 3, 4, 5), (2, 3, 4, 5, 6), (2, 0, 4)])
def test_strides_are_those_of_tensors(shape):
    assert prims.make_contiguous_strides_for(shape) == torch.empty(shape).stride()
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    if len(shape) in formats:
        laid_out = torch.empty(shape, memory_format=formats[len(shape)])
        assert prims.make_channels_last_strides_for(shape) == laid_out.stride()
        assert prims.suggest_memory_format(laid_out) is formats[len(shape)]
        assert prims.suggest_memory_format(torch.empty(shape)) is torch.contiguous_format


@pytest.mark.parametrize("operands, kind, expected", [
    ((torch.ones(2, dtype=torch.int8), 2.5), KIND.INT_TO_FLOAT, (torch.float32, torch.float32)),
    ((torch.ones(2, dtype=torch.half),), KIND.DEFAULT, (torch.float32, torch.half)),
    ((torch.ones(2, dtype=torch.half),), KIND.NO_OPMATH, (torch.half, torch.half)),
    ((torch.ones(2, dtype=torch.cfloat),), KIND.COMPLEX_TO_FLOAT, (torch.cfloat, torch.float32)),
    ((torch.ones(2),), KIND.ALWAYS_BOOL, (torch.float32, torch.bool)),
    ((torch.ones(2, dtype=torch.bool),), KIND.BOOL_TO_LONG, (torch.int64, torch.int64)),
    ((torch.ones(()), torch.ones(2, dtype=torch.int8)), KIND.DEFAULT,
     (torch.float32, torch.float32)),
])
def test_types_of_elementwise_ops(operands, kind, expected):
    assert prims.elementwise_dtypes(*operands, type_promotion_kind=kind) == expected


def test_dimensions_count_from_the_front():
    assert prims.canonicalize_dims(3, (0, -1)) == (0, 2) and prims.canonicalize_dim(0, -1) == 0
    assert prims.reduction_dims((2, 3), None) == (0, 1)
    with pytest.raises(IndexError, match=r"range of \[-3, 2\], but got 3"):
        prims.canonicalize_dim(3, 3)
    with pytest.raises(RuntimeError, match="duplicate"):
        prims.reduction_dims((2, 3), (1, -1))


def test_numbers_and_types():
    assert prims.get_higher_dtype(torch.half, torch.bfloat16) is torch.float32
    assert prims.type_to_dtype(int) is torch.int64 and prims.dtype_to_type(torch.half) is float
    assert not prims.can_safe_cast_to(cast_to=torch.int8, cast_from=torch.float32)
    assert (prims.set_correction(), prims.set_correction(False)) == (1, 0)
    with pytest.raises(RuntimeError, match="cannot specify both"):
        prims.set_correction(True, 1)

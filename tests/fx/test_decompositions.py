"""Tables of decompositions, sizes that may vary, and the small ops beside aten's."""
import pytest

import flambeau
from flambeau._decomp import (
    core_aten_decompositions,
    get_decompositions,
    register_decomposition,
    remove_decompositions,
)
from flambeau._prims_common import infer_size, is_float_dtype, is_integer_dtype
from flambeau.fx.experimental.proxy_tensor import make_fx

aten = flambeau.ops.aten


def test_a_table_is_made_used_and_reduced():
    table = get_decompositions([aten.silu, aten.add])
    assert aten.silu.default in table and aten.add.Tensor not in table
    x = flambeau.randn(3)
    graph = make_fx(lambda x: flambeau.nn.functional.silu(x), decomposition_table=table)(x)
    assert all(node.target is not aten.silu.default for node in graph.graph.nodes)
    assert flambeau.allclose(graph(x), flambeau.nn.functional.silu(x))
    whole = core_aten_decompositions()
    remove_decompositions(whole, [aten.silu])
    assert aten.silu.default not in whole and aten.silu.default in core_aten_decompositions()


def test_a_decomposition_is_registered_once():
    own = {}

    @register_decomposition(aten.silu.default, own)
    def silu(x):
        return x * x.sigmoid()

    assert own == {aten.silu.default: silu}
    with pytest.raises(RuntimeError, match="duplicate registrations for aten"):
        register_decomposition([aten.silu.default], own)(silu)


def test_sizes_and_dtypes():
    assert infer_size((2, -1, 3), 12) == (2, 2, 3)
    with pytest.raises(RuntimeError, match="only one dimension"):
        infer_size((-1, -1), 4)
    with pytest.raises(RuntimeError, match=r"shape '\[4, -1\]' is invalid for input of size 6"):
        infer_size((4, -1), 6)
    assert is_integer_dtype(flambeau.uint8) and not is_integer_dtype(flambeau.bool)
    assert is_float_dtype(flambeau.bfloat16)


def test_small_ops_beside_the_table():
    assert flambeau.ops.prims.convert_element_type(flambeau.ones(2), flambeau.int64).tolist() \
        == [1, 1]
    assert aten.is_non_overlapping_and_dense(flambeau.ones(2, 3))
    assert not aten.is_non_overlapping_and_dense(flambeau.ones(2, 3)[:, ::2])

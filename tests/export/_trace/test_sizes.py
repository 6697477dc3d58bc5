"""Numbers that follow from sizes."""
import pytest
from export_cases import Network, function

import flambeau as torch
from flambeau.export import Dim, export


def test_dynamic_sizes_become_symbols():
    program = export(Network(), (torch.ones(2, 1, 4, 4),),
                     dynamic_shapes={"x": {0: Dim("batch", min=2, max=100)}})
    assert str(program.range_constraints) == "{s77: VR[2, 100]}"
    sizes = {str(n): n.meta["sizes"] for n in program.graph.nodes if "sizes" in n.meta}
    assert str(sizes["x"]) == "(s77, 1, 4, 4)"
    assert str(sizes["view"]) == "(s77, 8)"
    module = program.module()
    for batch in (1, 3, 100):
        assert [r.shape[0] for r in module(torch.ones(batch, 1, 4, 4))] == [batch, batch]
    with pytest.raises(AssertionError, match=r"Guard failed: x.size\(\)\[0\] <= 100"):
        module(torch.ones(101, 1, 4, 4))


def test_numbers_made_of_sizes_are_computed_in_the_graph():
    def f(x, y):
        rows, columns = x.shape
        return (x.view(rows, -1), torch.ones(rows * 2), x + y, torch.arange(rows),
                torch.zeros(rows * columns),
                torch.ones(columns // 2), x.new_zeros(rows - 1), rows + columns)
    shape = {0: Dim("n", min=2), 1: Dim("m", min=2)}
    program = function(f, torch.ones(3, 4), torch.ones(3, 4), dynamic_shapes=(shape, shape))
    module = program.module()
    for n, m in ((5, 8), (7, 2), (2, 6)):
        x = torch.rand(n, m)
        for found, wanted in zip(module(x, x), f(x, x)):
            assert torch.equal(found, wanted) if isinstance(wanted, torch.Tensor) \
                else found == wanted
    assert {str(n.meta["val"]) for n in program.graph.nodes
            if not isinstance(n.meta.get("val", n), (torch.Tensor, type(n)))} >= {"2*s17", "s17"}

"""Programs in fewer ops, none of which writes."""
from export_cases import Network

import flambeau as torch
from flambeau.export import Dim, export


def test_decompositions_write_to_nothing():
    model = Network()
    program = export(model, (torch.ones(2, 1, 4, 4),), dynamic_shapes=({0: Dim("n", min=2)},))
    core = program.run_decompositions()
    assert core.dialect == "ATEN"
    names = [n.target.__name__ for n in core.graph.nodes if n.op == "call_function"]
    assert names[:3] == ["sym_size.int", "add.Tensor", "convolution.default"]
    assert not any(name.partition(".")[0].endswith("_") for name in names)
    assert list(core.graph_signature.buffers_to_mutate.values()) == [
        "count", "bn.running_mean", "bn.running_var", "bn.num_batches_tracked"]
    x = torch.rand(5, 1, 4, 4)
    before = model.bn.running_mean.clone()
    found = core.module()(x)
    assert model.count == 1 and not torch.equal(before, model.bn.running_mean)
    model.count.zero_()
    torch.testing.assert_close(found, model(x))

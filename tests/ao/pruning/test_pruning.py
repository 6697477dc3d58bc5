"""Sparsifiers and their schedulers, together."""

import copy

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.ao import pruning


class FirstRow(pruning.BaseSparsifier):
    def update_mask(self, module, tensor_name, **rest):
        module.parametrizations[tensor_name][0].mask[0] = 0
        self.seen = rest


def network():
    return nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Sequential(nn.Linear(3, 2)))


def prepared(sparsifier, config=None):
    model = network()
    sparsifier.prepare(model, config)
    return model


def test_groups_have_defaults_and_places():
    sparsifier = FirstRow({"a": 1})
    model = prepared(sparsifier, [{"tensor_fqn": "0.weight", "b": 3},
                                  {"tensor_fqn": "2.0.weight", "a": 5}])
    assert [{k: v for k, v in g.items() if k != "module"} for g in sparsifier.groups] == [
        {"a": 1, "b": 3, "tensor_fqn": "0.weight", "module_fqn": "0", "tensor_name": "weight"},
        {"a": 5, "tensor_fqn": "2.0.weight", "module_fqn": "2.0", "tensor_name": "weight"}]
    assert sparsifier.groups[1]["module"] is model[2][0]
    lines = repr(sparsifier).split("\n")
    assert lines[:2] == ["FirstRow (", "\tGroup 0"] and lines[2].startswith("\t    module: Param")
    assert lines[10:15] == ["\t    a: 1", "\t    b: 3", "\t    module_fqn: 0",
                           "\t    tensor_fqn: 0.weight", "\t    tensor_name: weight"]
    assert repr(FirstRow()) == "FirstRow ()"


def test_masks_multiply():
    sparsifier = FirstRow({"a": 1})
    model = prepared(sparsifier)
    dense = model[0].parametrizations.weight.original
    assert torch.equal(model[0].weight, dense)
    sparsifier.step()
    assert sparsifier.seen == {"a": 1, "tensor_fqn": "2.0.weight", "module_fqn": "2.0"}
    expected = dense.detach().clone()
    expected[0] = 0
    assert torch.equal(model[0].weight, expected)
    model(torch.ones(1, 4)).sum().backward()
    assert dense.grad[0].abs().sum() == 0
    assert not any("mask" in name for name in model.state_dict())
    sparsifier.squash_mask()
    assert type(model[0]) is nn.Linear and torch.equal(model[0].weight, expected)


def test_masks_stay_where_updates_are_off():
    sparsifier = FirstRow()
    model = prepared(sparsifier)
    sparsifier.enable_mask_update = False
    sparsifier.step()
    assert (model[0].weight != 0).all()


def test_arguments_are_kept():
    sparsifier = FirstRow({"a": 1})
    model = prepared(sparsifier)
    sparsifier.squash_mask(("a",), {"0": ("tensor_fqn",)})
    assert model[0].sparse_params == {"a": 1, "tensor_fqn": "0.weight"}
    assert model[2][0].sparse_params == {"a": 1}


def test_states():
    sparsifier, other = FirstRow({"a": 1}), FirstRow()
    prepared(sparsifier)
    sparsifier.step()
    state = copy.deepcopy(sparsifier.state_dict())
    assert state["groups"] == [{"a": 1, "tensor_fqn": "0.weight"},
                               {"a": 1, "tensor_fqn": "2.0.weight"}]
    model = prepared(other)
    other.load_state_dict(state)
    assert (model[0].weight[0] == 0).all() and (model[2][0].weight[0] == 0).all()
    assert other.groups[0]["a"] == 1 and other.groups[0]["module"] is model[0]
    state["state"]["9.weight"] = {"mask": torch.ones(1)}
    with pytest.raises(RuntimeError, match=r"Error loading 9.weight into the model"):
        other.load_state_dict(state)


def test_configurations_are_checked():
    for config, error in (([{"x": 1}], "tensor_fqn is a required argument"),
                          (["0.weight"], "config elements should be dicts"),
                          ([{"tensor_fqn": "0.weight", "tensor_name": "bias"}], "to agree!")):
        with pytest.raises(AssertionError, match=error):
            prepared(FirstRow(), config)
    with pytest.raises(TypeError, match="abstract"):
        pruning.BaseSparsifier()


def test_modules_are_converted():
    class Dense:
        @staticmethod
        def from_dense(module):
            return nn.Identity()

    sparsifier = FirstRow()
    model = prepared(sparsifier, [{"tensor_fqn": "2.0.weight"}])
    with pytest.raises(NotImplementedError):
        sparsifier.convert(model)
    made = sparsifier.convert(model, {nn.Linear: Dense})
    assert type(made[0]) is nn.Linear and type(made[2][0]) is nn.Identity
    assert type(model[2][0]) is not nn.Identity


def test_names():
    model = network()
    assert pruning.fqn_to_module(model, "2.0") is model[2][0]
    assert pruning.fqn_to_module(model, "x.y") is None and pruning.fqn_to_module(model, "") is model
    assert pruning.fqn_to_module(model, "0.weight") is model[0].weight
    assert pruning.module_to_fqn(model, model[2][0]) == "2.0"
    assert pruning.module_to_fqn(model, model) == ""
    assert pruning.module_to_fqn(model, nn.ReLU()) is None
    assert pruning.get_arg_info_from_tensor_fqn(model, "9.weight") == {
        "module_fqn": "9", "module": None, "tensor_name": "weight", "tensor_fqn": "9.weight"}
    with pytest.raises(AssertionError, match="must match x shape"):
        pruning.FakeSparsity(torch.ones(1, 2))(torch.ones(2, 2))


def test_quantised_forms_of_pruned_layers():
    from flambeau.ao.nn.sparse import quantized
    assert pruning.get_static_sparse_quantized_mapping()[nn.Linear] is quantized.Linear
    assert pruning.get_dynamic_sparse_quantized_mapping()[nn.Linear] is quantized.dynamic.Linear


def mask(weight, sparsifier):
    model = nn.Sequential(nn.Linear(*reversed(weight.shape)))
    model[0].weight.data.copy_(weight)
    sparsifier.prepare(model, None)
    sparsifier.step()
    return model[0].parametrizations.weight[0].mask.int().tolist()


ROWS = torch.arange(1, 25.0).reshape(4, 6)


@pytest.mark.parametrize("level, zeros", [(0.0, 0), (0.3, 6), (0.32, 10), (0.43, 10), (0.44, 12),
                                          (0.5, 12), (1.0, 24)])
def test_the_smallest_blocks_are_zero(level, zeros):
    """Of eight blocks, half of them of two columns, which are measured by their mean."""
    found = mask(ROWS, pruning.WeightNormSparsifier(level))
    assert [each for row in found for each in row] == [0] * zeros + [1] * (24 - zeros)


def test_blocks_of_several_rows_and_norms():
    assert mask(ROWS, pruning.WeightNormSparsifier(0.5, (2, 4))) == [[0] * 6] * 2 + [[1] * 6] * 2
    short = torch.tensor([[3.0, 3, 3, 3, 4, 4]])
    assert mask(short, pruning.WeightNormSparsifier(0.5)) == [[0, 0, 0, 0, 1, 1]]
    signed = torch.tensor([[3.0, -4], [2, 2]])
    for norm, expected in ((1, [[1, 1], [0, 0]]), (2, [[1, 1], [0, 0]]), (None, [[1, 1], [0, 0]]),
                           (lambda x: x, [[0, 0], [1, 1]])):
        assert mask(signed, pruning.WeightNormSparsifier(0.5, (1, 2), norm=norm)) == expected
    with pytest.raises(NotImplementedError, match=r"L-3 is not yet implemented"):
        pruning.WeightNormSparsifier(norm=3)


def test_some_elements_of_each_block():
    weight = torch.tensor([[1.0, 2, 3, 4, 8, 7, 6, 5], [1, -1, 1, -1, 9, 9, -9, -8]])
    for level, shape, count, expected in (
            (0.5, (1, 4), 2, [[0, 0, 1, 1, 1, 1, 1, 1], [0, 0, 1, 1, 1, 1, 1, 1]]),
            (1.0, (1, 4), 2, [[0, 0, 1, 1, 1, 1, 0, 0], [0, 0, 1, 1, 1, 1, 0, 0]]),
            (0.5, (2, 2), 3, [[0, 1, 0, 1, 1, 1, 1, 1], [0, 0, 0, 0, 1, 1, 1, 1]])):
        found = mask(weight, pruning.WeightNormSparsifier(level, shape, count))
        assert torch.tensor(found)[0].tolist() == expected[0]
        blocks = torch.tensor(found).view(2 // shape[0], shape[0], -1, shape[1]).sum((1, 3))
        assert {shape[0] * shape[1] - count, shape[0] * shape[1]} >= set(blocks.flatten().tolist())


def test_what_was_zero_stays_zero():
    sparsifier = pruning.WeightNormSparsifier(0.5)
    model = nn.Sequential(nn.Linear(4, 2))
    model[0].weight.data = torch.tensor([[1.0, 1, 1, 1], [2, 2, 2, 2]])
    sparsifier.prepare(model, None)
    for _ in range(2):
        sparsifier.step()
        assert model[0].weight.sum(1).tolist() == [0, 8]
        model[0].parametrizations.weight.original.data[0] = 9
    sparsifier.groups[0]["sparsity_level"] = 0.0
    sparsifier.step()
    assert model[0].weight.sum(1).tolist() == [36, 8]


@pytest.mark.parametrize("rows, columns, nearliness", [(4, 4, 1), (4, 4, 3), (4, 4, 5), (3, 5, 3),
                                                       (5, 3, 3)])
def test_nearly_diagonal(rows, columns, nearliness):
    found = mask(torch.ones(rows, columns), pruning.NearlyDiagonalSparsifier(nearliness))
    assert found == [[int(2 * abs(i - j) < nearliness) for j in range(columns)]
                     for i in range(rows)]


def test_nearly_diagonal_checks():
    for nearliness, error in ((2, "only be an odd number"), (9, "larger than the dimensions")):
        with pytest.raises(ValueError, match=error):
            mask(torch.ones(4, 4), pruning.NearlyDiagonalSparsifier(nearliness))


def scheduled(kind, *args, **options):
    sparsifier = pruning.WeightNormSparsifier(0.8)
    prepared(sparsifier)
    scheduler = kind(sparsifier, *args, **options)
    levels = [scheduler.get_last_sl()]
    for _ in range(8):
        sparsifier.step()
        scheduler.step()
        levels.append([group["sparsity_level"] for group in sparsifier.groups])
    return levels


def test_levels_by_a_function():
    found = scheduled(pruning.LambdaSL, [lambda t: t / 10, lambda t: 1.0])
    assert found == [pytest.approx([0.08 * t, 0.8]) for t in range(9)]


def test_levels_by_a_cubic():
    found = scheduled(pruning.CubicSL, init_sl=[0.2, 0.1], init_t=2, delta_t=2, total_t=3)
    for t, (first, second) in enumerate(found):
        left = min(1, max(0, 1 - (t - 2) / 6)) ** 3
        assert first == pytest.approx(0.8 - 0.6 * left)
        assert second == pytest.approx(0.8 - 0.7 * left)
    found = scheduled(pruning.CubicSL, init_sl=0.2, init_t=2, initially_zero=True)
    assert found[:3] == [[0, 0], [0, 0], pytest.approx([0.2, 0.2])]


def test_schedulers_check_their_arguments():
    sparsifier = pruning.WeightNormSparsifier()
    prepared(sparsifier)
    with pytest.raises(ValueError, match="Expected 2 lr_lambdas, but got 1"):
        pruning.LambdaSL(sparsifier, [lambda t: 1])
    with pytest.raises(ValueError, match="Expected variable of length 2, but got 1"):
        pruning.CubicSL(sparsifier, init_sl=[0.5])
    with pytest.raises(TypeError, match=r"int is not an instance of torch.ao.pruning.BaseSpars"):
        pruning.BaseScheduler(3)
    with pytest.raises(NotImplementedError):
        pruning.BaseScheduler(sparsifier)


def test_schedulers_say_what_they_do(capsys):
    sparsifier = pruning.WeightNormSparsifier(0.8)
    prepared(sparsifier)
    scheduler = pruning.LambdaSL(sparsifier, lambda t: 1.0, verbose=True)
    scheduler.print_sl(True, 0, 0.5, 7)
    assert capsys.readouterr().out.splitlines() == [
        "Adjusting sparsity level of group 0 to 8.0000e-01.",
        "Adjusting sparsity level of group 1 to 8.0000e-01.",
        "Epoch     7: adjusting sparsity level of group 0 to 5.0000e-01."]
    with pytest.warns(UserWarning, match="please use `get_last_sl"):
        scheduler.get_sl()
    with pytest.warns(UserWarning, match="BEFORE any calls"):
        scheduler.step()
    assert repr(scheduler).startswith("LambdaSL (\nSparsifier WeightNormSparsifier (\n")
    assert repr(scheduler).endswith("    base_sl: [0.8, 0.8]\n)")
    assert "sparsifier" not in scheduler.state_dict() and scheduler.state_dict()["last_epoch"] == 1

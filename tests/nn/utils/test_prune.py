"""Weights that are masked."""
import pytest
from script_tests import ScriptTests

import flambeau as torch
from flambeau import nn
from flambeau.nn.utils import prune


class TestScripts(ScriptTests):
    topics = ("utils/prune",)


def layer(values):
    made = nn.Linear(len(values[0]), len(values), bias=False)
    made.weight.data = torch.tensor(values)
    return made


VALUES = [[0.1, -3.0, 0.5], [2.0, -0.2, 1.0]]


@pytest.mark.parametrize("amount, wanted", [
    (2, [[0, 1, 1], [1, 0, 1]]), (0.5, [[0, 1, 0], [1, 0, 1]]), (0, [[1] * 3] * 2),
    (6, [[0] * 3] * 2)])
def test_the_smallest_go_first(amount, wanted):
    pruned = prune.l1_unstructured(layer(VALUES), "weight", amount)
    assert pruned.weight_mask.tolist() == wanted
    assert torch.equal(pruned.weight, torch.tensor(VALUES) * torch.tensor(wanted))
    assert pruned.weight_orig.tolist() == torch.tensor(VALUES).tolist()


def test_whole_columns_by_their_norm():
    pruned = prune.ln_structured(layer(VALUES), "weight", 1, n=2, dim=1)
    assert pruned.weight_mask.tolist() == [[1, 1, 0]] * 2
    scores = torch.tensor([[0.0, 1, 1], [0, 1, 1]])
    other = prune.ln_structured(layer(VALUES), "weight", 1, n=1, dim=1, importance_scores=scores)
    assert other.weight_mask.tolist() == [[0, 1, 1]] * 2


def test_gradients_pass_where_the_mask_does():
    pruned = prune.l1_unstructured(layer(VALUES), "weight", 2)
    pruned(torch.ones(1, 3)).sum().backward()
    assert torch.equal(pruned.weight_orig.grad, pruned.weight_mask)


def test_masks_add_up_and_can_be_made_lasting():
    pruned = layer(VALUES)
    prune.l1_unstructured(pruned, "weight", 2)
    prune.l1_unstructured(pruned, "weight", 1)          # of what is left
    assert pruned.weight_mask.sum() == 3 and prune.is_pruned(pruned)
    (hook,) = pruned._forward_pre_hooks.values()
    assert isinstance(hook, prune.PruningContainer) and len(hook) == 2
    prune.remove(pruned, "weight")
    assert list(pruned.state_dict()) == ["weight"] and not prune.is_pruned(pruned)
    assert pruned.weight.count_nonzero() == 3


def test_over_several_layers_at_once():
    one, other = layer(VALUES), layer([[10.0, 20.0]])
    prune.global_unstructured([(one, "weight"), (other, "weight")], prune.L1Unstructured, amount=6)
    assert not one.weight_mask.any() and other.weight_mask.all()

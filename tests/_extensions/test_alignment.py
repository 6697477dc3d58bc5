"""The likeliest alignment of labels with frames."""
import itertools

import pytest

import flambeau as torch
from flambeau._extensions.alignment import forced_align


def align(log_probs, targets, blank=0):
    path, scores = forced_align(log_probs[None], torch.tensor([targets]),
                                torch.tensor([len(log_probs)]), torch.tensor([len(targets)]), blank)
    assert scores.shape == (1, *log_probs.shape)
    return path[0].tolist()


@pytest.mark.parametrize("targets", [[1], [1, 2], [2, 2], [1, 2, 1]])
def test_it_is_the_best_of_all_paths(targets):
    torch.manual_seed(1)
    log_probs = torch.randn(5, 3).log_softmax(-1)

    def said(path):
        return [k for k, _ in itertools.groupby(path) if k != 0]
    paths = [p for p in itertools.product(range(3), repeat=5) if said(p) == targets]
    best = max(paths, key=lambda p: sum(log_probs[t, k].item() for t, k in enumerate(p)))
    assert align(log_probs, targets) == list(best)


def test_repeated_labels_have_a_blank_between():
    log_probs = torch.full((3, 2), -1.0)
    assert align(log_probs, [1, 1]) == [1, 0, 1]
    with pytest.raises(RuntimeError, match=r"targets length is too long for CTC.*repeats: 1"):
        align(log_probs[:2], [1, 1])


@pytest.mark.parametrize("change, message", [
    ({"log_probs": torch.zeros(1, 2, 3, dtype=torch.long)}, "log_probs must be float"),
    ({"targets": torch.zeros(1, 1)}, "targets must be int32 or int64"),
    ({"targets": torch.zeros(1, dtype=torch.long)}, "targets must be 2-D"),
    ({"log_probs": torch.zeros(2, 2, 3)}, "batch dimension for log_probs must be 1"),
    ({"blank": 3}, r"blank must be within \[0, num classes\)"),
    ({"input_lengths": torch.tensor([1])}, "input length mismatch"),
    ({"target_lengths": torch.tensor([2])}, "target length mismatch")])
def test_refusals(change, message):
    given = {"log_probs": torch.zeros(1, 2, 3), "targets": torch.tensor([[1]]),
             "input_lengths": torch.tensor([2]), "target_lengths": torch.tensor([1]),
             "blank": 0} | change
    with pytest.raises(RuntimeError, match=message):
        forced_align(*given.values())

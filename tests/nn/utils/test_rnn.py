"""Sequences of different lengths, packed and padded."""
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from script_tests import ScriptTests

import flambeau as torch
from flambeau.nn.utils import rnn


class TestScripts(ScriptTests):
    topics = ("utils/rnn",)


@pytest.mark.parametrize("side", ["right", "left"])
def test_the_first_sequence_says_type_and_shape(side):
    numbers = torch.ones(2, 2, dtype=torch.int64)
    for other in (torch.full((1, 2), 3.75), torch.full((1, 1), 3.0), torch.tensor([[3, 3]])):
        found = rnn.pad_sequence([numbers, other], True, -1, side)
        assert found.dtype is torch.int64
        wanted = [[3, 3], [-1, -1]]
        assert found[1].tolist() == (wanted if side == "right" else wanted[::-1])
    with pytest.raises(RuntimeError, match="must match the size of tensor"):
        rnn.pad_sequence([numbers, torch.ones(1, 3)])


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), st.booleans())
def test_there_and_back(lengths, batch_first):
    sequences = [torch.randn(n, 3) for n in lengths]
    packed = rnn.pack_sequence(sequences, enforce_sorted=False)
    assert packed.data.shape == (sum(lengths), 3)
    padded, found = rnn.pad_packed_sequence(packed, batch_first=batch_first, padding_value=-7)
    assert found.tolist() == lengths
    assert torch.equal(padded, rnn.pad_sequence(sequences, batch_first, -7))
    for mine, sequence in zip(rnn.unpack_sequence(packed), sequences):
        assert torch.equal(mine, sequence)


def test_gradients_go_to_their_sequence():
    sequences = [torch.ones(n, requires_grad=True) for n in (3, 1)]
    (rnn.pad_sequence(sequences, True) * torch.arange(6.0).view(2, 3)).sum().backward()
    assert [x.grad.tolist() for x in sequences] == [[0, 1, 2], [3]]


def test_unpadded_sequences_are_copies():
    parts = rnn.unpad_sequence(torch.ones(3, 2), torch.tensor([3, 2]))
    assert [p.stride() for p in parts] == [(1,), (1,)] and [len(p) for p in parts] == [3, 2]
    assert all(p._base is None for p in parts)

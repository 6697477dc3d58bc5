"""Attention among sequences of several lengths: an op of GPUs."""
import pytest

import flambeau as torch
from flambeau.nn.attention import varlen


def test_there_is_none_on_a_cpu():
    x, ends = torch.ones(5, 2, 4), torch.tensor([0, 2, 5], dtype=torch.int32)
    with pytest.raises(NotImplementedError, match="aten::_flash_attention_forward"):
        varlen.varlen_attn(x, x, x, ends, ends, 3, 3)
    with pytest.raises(NotImplementedError, match="with arguments from the 'CPU' backend"):
        varlen.varlen_attn_out(torch.empty_like(x), x, x, x, ends, ends, 3, 3)


def test_what_may_be_asked_for_besides():
    assert varlen.AuxRequest().lse is False
    assert varlen.AuxRequest(lse=True)._asdict() == {"lse": True}

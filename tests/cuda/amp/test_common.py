"""Is there CUDA to lower the precision on?"""
import flambeau as torch
from flambeau.cuda.amp.common import amp_definitely_not_available


def test_there_is_not():
    assert amp_definitely_not_available() == (not torch.cuda.is_available())

"""Options of the cross entropy of a linear layer's scores."""
import copy
import pickle

import pytest

import flambeau
from flambeau.nn.modules.linear_cross_entropy_options import LinearCrossEntropyOptions


def test_they_are_found_where_pickles_name_them():
    options = LinearCrossEntropyOptions(batch_chunk_size=2)
    assert options == pickle.loads(pickle.dumps(options)) == copy.copy(options)
    assert LinearCrossEntropyOptions.__module__.endswith(
        ".nn.modules.linear_cross_entropy_options")
    assert flambeau.nn.LinearCrossEntropyOptions is LinearCrossEntropyOptions


@pytest.mark.parametrize("wrong", [
    {"chunking_method": "x"}, {"acc_policy": None}, {"batch_chunk_size": 0},
    {"acc_dtype": "float32"}])
def test_what_is_no_choice_is_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        LinearCrossEntropyOptions(**wrong)

"""Graphs of models for TensorBoard are refused by name."""
import pytest

import flambeau
from flambeau.utils.tensorboard._pytorch_graph import graph


def test_refused():
    with pytest.raises(NotImplementedError, match="flambeau has no graphs of TorchScript"):
        graph(flambeau.nn.Linear(1, 1), flambeau.ones(1, 1))

"""The package: its classes, and modules that are imported when first used."""
import importlib

import pytest

import flambeau as torch


@pytest.mark.parametrize("name", ["_functional", "_multi_tensor", "_muon", "_adafactor", "adamw"])
def test_modules_are_there(name):
    module = importlib.import_module(f"flambeau.optim.{name}")
    assert module.__name__.rpartition(".")[2] == name


def test_what_is_not_there():
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        torch.optim.nothing


def test_classes_are_optimizers_and_say_where_they_are():
    for name in torch.optim.__all__:
        kind = getattr(torch.optim, name)
        if isinstance(kind, type):
            assert issubclass(kind, torch.optim.Optimizer)
    assert torch.optim.Adafactor.__module__.endswith("optim")
    assert torch.optim.AdamW.__module__.endswith("optim.adamw")


def test_modules_of_optimisers_are_imported_but_not_shown():
    assert importlib.import_module("flambeau.optim.sgd").SGD is torch.optim.SGD
    with pytest.raises(AttributeError, match="has no attribute 'sgd'"):
        torch.optim.sgd

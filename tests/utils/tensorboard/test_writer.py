"""SummaryWriter; all but two tests need the package tensorboard."""
from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import flambeau
from flambeau.utils.tensorboard import SummaryWriter

needs_package = pytest.mark.skipif(importlib.util.find_spec("tensorboard") is None,
                                   reason="tensorboard is not installed")


def events(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    found = EventAccumulator(str(folder), size_guidance={"tensors": 0, "scalars": 0})
    found.Reload()
    return found


@needs_package
def test_scalars(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        for step in range(3):
            writer.add_scalar("loss", flambeau.tensor(step / 2), step)
        writer.add_scalars("both", {"a": 1.0, "b": 2.0}, 0)
    assert [(e.step, e.value) for e in events(tmp_path).Scalars("loss")] == [
        (0, 0.0), (1, 0.5), (2, 1.0)]
    assert events(tmp_path / "both_b").Scalars("both")[0].value == 2.0


@needs_package
def test_histogram(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_histogram("h", flambeau.tensor([1.0, 2.0, 2.0]), bins=[0.0, 1.5, 2.5, 9.0])
        with pytest.raises(ValueError, match="The input has no element"):
            writer.add_histogram("h", flambeau.ones(0))
    found = events(tmp_path).Histograms("h")[0].histogram_value
    assert found.bucket == [0.0, 1.0, 2.0] and found.bucket_limit == [0.0, 1.5, 2.5]
    assert (found.min, found.max, found.sum_squares) == (1.0, 2.0, 9.0)


@needs_package
def test_pictures(tmp_path):
    pytest.importorskip("PIL")
    with SummaryWriter(tmp_path) as writer:
        writer.add_image("i", flambeau.rand(3, 4, 5))
        writer.add_images("g", np.zeros((10, 1, 2, 2)))
    found = events(tmp_path)
    assert (found.Images("i")[0].height, found.Images("i")[0].width) == (4, 5)
    assert (found.Images("g")[0].height, found.Images("g")[0].width) == (4, 16)


@needs_package
def test_the_rest_is_written(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_text("t", "hello")
        writer.add_pr_curve("pr", flambeau.tensor([0, 1]), flambeau.tensor([0.1, 0.9]), 1)
        writer.add_hparams({"lr": 0.1, "name": "x"}, {"accuracy": 0.3}, run_name="hp")
        writer.add_custom_scalars_multilinechart(["a", "b"])
        writer.add_mesh("m", flambeau.rand(1, 3, 3))
        writer.add_audio("a", flambeau.zeros(1, 8))
        writer.add_embedding(flambeau.rand(2, 3), metadata=["a", "b"])
        with pytest.raises(NotImplementedError):
            writer.add_graph(None)
    tags = events(tmp_path).Tags()
    assert "t/text_summary" in tags["tensors"] and "pr" in tags["tensors"]
    assert (tmp_path / "00000" / "default" / "tensors.tsv").exists()
    assert events(tmp_path / "hp").Scalars("accuracy")

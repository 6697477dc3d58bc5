"""What `torch.ops.load_library` makes of a path."""

import pytest

import flambeau as torch


def test_a_known_extension_is_replaced(tmp_path):
    path = tmp_path / "torchvision" / "_C.so"
    path.parent.mkdir()
    path.write_bytes(b"compiled against PyTorch")
    torch.ops.load_library(path)
    assert torch.ops.torchvision.nms(torch.zeros(0, 4), torch.zeros(0), 0.5).shape == (0,)
    assert str(path) in torch.ops.loaded_libraries


@pytest.mark.parametrize("name", ["missing.so", "torchvision/_C.so"])
def test_a_file_that_is_not_there(name, tmp_path):
    with pytest.raises(OSError, match=r"Could not load this library: .*so"):
        torch.ops.load_library(str(tmp_path / name))


def test_a_file_that_is_no_library(tmp_path):
    path = tmp_path / "other.so"
    path.write_bytes(b"text")
    with pytest.raises(OSError, match=r"Could not load this library: .*other.so"):
        torch.ops.load_library(path)
    assert str(path) not in torch.ops.loaded_libraries

"""Grids of numbers."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.distributed._mesh_layout import _FlatLayout, _MeshLayout


@pytest.mark.parametrize(("shape", "stride", "ranks"), [
    ((2, 4), (8, 1), [0, 1, 2, 3, 8, 9, 10, 11]), ((2, 3), None, [0, 1, 2, 3, 4, 5]),
    (4, 2, [0, 2, 4, 6]), ((2, 2), (1, 2), [0, 2, 1, 3]), ((), None, [0]), (1, 5, [0])])
def test_numbers(shape, stride, ranks):
    layout = _FlatLayout(shape, stride)
    assert layout.all_ranks_from_zero() == ranks
    assert layout.numel() == len(ranks)


def test_dimensions_are_joined():
    assert _FlatLayout((2, 2), (2, 1)) == _FlatLayout(4, 1)
    assert _FlatLayout((3, 1, 2), (2, 7, 1)) == _FlatLayout(6)
    assert _FlatLayout((2, 2), (1, 2)) != _FlatLayout(4, 1)
    assert list(_FlatLayout((2, 4), (8, 1)).sizes_and_strides) == [(2, 8), (4, 1)]


@pytest.mark.parametrize(("shape", "stride", "size"), [
    ((2, 4), (8, 1), 16), (4, 1, 16), (2, 8, 16), ((2, 2), (4, 1), 8), (2, 1, 12)])
def test_copies_fill_the_world(shape, stride, size):
    layout = _FlatLayout(shape, stride)
    groups = layout.global_ranks(size)
    assert groups[0] == layout.all_ranks_from_zero()
    assert sorted(rank for ranks in groups for rank in ranks) == list(range(size))
    assert layout.complement(size).numel() * layout.numel() == size


def test_order():
    assert _FlatLayout((2, 4), (8, 1)).check_sorted()
    assert not _FlatLayout((2, 2), (1, 2)).check_sorted()
    assert _FlatLayout((2, 4), (8, 1)).check_orthogonal()
    assert not _FlatLayout((2, 4), (2, 1)).check_orthogonal()


def test_meshes():
    mesh = _MeshLayout.from_sizes_strides((2, 3, 4))
    assert mesh.top_level_sizes == (2, 3, 4) and mesh.numel() == 24
    assert mesh.collapse() == _FlatLayout(24) and len(mesh[1:]) == 2
    spliced = mesh.splice(1, 3, _MeshLayout([_FlatLayout(12)]))
    assert spliced.top_level_sizes == (2, 12)
    with pytest.raises(ValueError, match="must have the same length, got 2 and 1"):
        _MeshLayout.from_sizes_strides((2, 3), (1,))


def test_ranks_at_the_places():
    mesh = _MeshLayout.from_sizes_strides((2, 2), (4, 1))
    found = mesh.remap_to_tensor(torch.arange(8))
    assert found.tolist() == [[[0, 1], [4, 5]], [[2, 3], [6, 7]]]

"""Random numbers on distributed tensors."""
from __future__ import annotations

import warnings

import pytest
from tensor_cases import imagined, put, spec

import flambeau as torch
from flambeau.distributed.device_mesh import init_device_mesh
from flambeau.distributed.tensor import Replicate, Shard, _random


@pytest.fixture
def mesh():
    with imagined(4) as found:
        yield found


def test_meshes_of_cpus_are_warned_of(mesh):
    with pytest.warns(UserWarning, match=r"manual_seed\(\) may not have complete support"):
        _random.manual_seed(0, mesh)
    with pytest.warns(UserWarning, match="random operators may not have complete support on cpu"):
        assert not _random.is_rng_supported_mesh(mesh)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(RuntimeError, match="requires the presence of CUDA"):
            _random.OffsetBasedRNGTracker(mesh)


@pytest.mark.parametrize(("place", "shape", "cuts", "first", "index", "total"), [
    ((3,), (7, 6), (Shard(0),), [2, 6], [3, 0], [4, 1]),
    ((1, 1), (8, 6), (Shard(1), Shard(0)), [4, 3], [1, 1], [2, 2]),
    ((1, 1), (8, 6), (Shard(0), Shard(0)), [2, 6], [3, 0], [4, 1]),
    ((1, 0), (8, 6), (Replicate(), Shard(1)), [8, 3], [0, 0], [1, 2])])
def test_which_piece_it_is(mesh, place, shape, cuts, first, index, total):
    found = spec(init_device_mesh("cpu", (2, 2)) if len(cuts) > 1 else mesh, shape, *cuts)
    assert _random._calc_first_shard_size(found) == first
    assert _random._calc_shard_info(place, found) == (index, total)


def test_numbers_of_pieces():
    places = [(a, b, c) for a in range(2) for b in range(3) for c in range(4)]
    assert [_random._calc_shard_linear_idx(p, (2, 3, 4)) for p in places] == list(range(24))


def test_states_of_generators():
    state = _random._PhiloxState(torch.zeros(16, dtype=torch.uint8))
    state.seed, state.offset = torch.tensor([2 ** 40 + 3]), torch.tensor([12])
    assert state.seed.item() == 2 ** 40 + 3 and state.offset.item() == 12
    assert state.state[:8].tolist() == [3, 0, 0, 0, 0, 1, 0, 0]
    assert _random._PhiloxState(state.state.clone()).offset.item() == 12


def test_pieces_are_drawn_where_they_are(mesh):
    x = put(torch.zeros(8, 2), mesh, Shard(0))
    torch.manual_seed(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x.uniform_(3, 4)
    assert x.placements == (Shard(0),) and ((x.to_local() >= 3) & (x.to_local() < 4)).all()

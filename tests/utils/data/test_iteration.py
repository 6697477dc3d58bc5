"""What iterations over a loader have in common, with worker processes and without."""
import pytest
from datapipe_cases import check_like_pytorch

import flambeau
from flambeau.utils.data import DataLoader, IterableDataset
from flambeau.utils.data.dataloader import _sharding_worker_init_fn
from flambeau.utils.data.datapipes.iter import IterableWrapper


def test_pipes_in_loaders_like_pytorch():
    check_like_pytorch("loaders", flambeau)


def test_each_iteration_draws_one_seed():
    flambeau.manual_seed(3)
    expected = flambeau.empty((), dtype=flambeau.int64).random_().item()
    following = flambeau.rand(1)
    flambeau.manual_seed(3)
    iteration = iter(DataLoader([1, 2]))
    assert iteration._base_seed == expected and flambeau.equal(flambeau.rand(1), following)


def test_an_iterable_that_gives_more_than_it_said():
    class Liar(IterableDataset):
        def __iter__(self):
            return iter(range(3))

        def __len__(self):
            return 2
    loader = DataLoader(Liar())
    assert len(loader) == 2
    with pytest.warns(UserWarning, match=r"was reported to be 2\(when accessing len\(dataloader\)"):
        assert len(list(loader)) == 3


def test_without_an_accelerator_nothing_is_pinned():
    loader = DataLoader([1], pin_memory=True)
    if not flambeau.accelerator.is_available():
        with pytest.warns(UserWarning, match="no accelerator is found"):
            assert next(iter(loader)).tolist() == [1]


def test_shares_of_workers(monkeypatch):
    class Info:
        dataset, num_workers = IterableWrapper(range(12)).sharding_filter(), 2
    monkeypatch.setattr(flambeau.utils.data, "get_worker_info", lambda: Info)
    ran = []
    _sharding_worker_init_fn(ran.append, 3, 1, 1)
    assert ran == [1] and list(Info.dataset) == [4, 10]

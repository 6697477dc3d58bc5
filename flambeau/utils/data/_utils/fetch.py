"""How the samples of a batch are got from a dataset."""

import flambeau
from flambeau.utils.data._utils.collate import default_collate
from flambeau.utils.data.dataset import TensorDataset


class _BaseDatasetFetcher:
    """What gets the batch of some numbers."""

    can_end = False   # with StopIteration

    def __init__(self, dataset, auto_collation, collate_fn, drop_last):
        self.dataset = dataset
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn
        self.drop_last = drop_last

    def fetch(self, possibly_batched_index):
        raise NotImplementedError(f"{type(self).__name__}.fetch")


class _MapDatasetFetcher(_BaseDatasetFetcher):
    """Gets samples by their numbers."""

    def __init__(self, dataset, auto_collation, collate_fn, drop_last):
        super().__init__(dataset, auto_collation, collate_fn, drop_last)
        self.by_slices = (
            auto_collation and collate_fn is default_collate and type(dataset) is TensorDataset
            and all(_is_plain(tensor) for tensor in dataset.tensors))

    def fetch(self, index):
        """The batch of the samples with the given numbers, or one sample without batches."""
        if not self.auto_collation:
            return self.collate_fn(self.dataset[index])
        if self.by_slices and all(type(i) is int for i in index):
            # Stacking rows that were taken one by one gives the same, many times slower.
            rows = flambeau.tensor(index, dtype=flambeau.int64)
            return [tensor.index_select(0, rows) for tensor in self.dataset.tensors]
        getitems = getattr(self.dataset, "__getitems__", None)
        if getitems:
            return self.collate_fn(getitems(index))
        return self.collate_fn([self.dataset[i] for i in index])


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    """Gets as many samples as there are numbers, from an iterator over the dataset."""

    can_end = True

    def __init__(self, dataset, auto_collation, collate_fn, drop_last):
        super().__init__(dataset, auto_collation, collate_fn, drop_last)
        self.dataset_iter = iter(dataset)
        self.ended = False

    def fetch(self, index):
        """The next batch, or the next sample without batches; StopIteration at the end."""
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        batch = [sample for _, sample in zip(index, self.dataset_iter, strict=False)]
        if len(batch) < len(index):
            self.ended = True
        if not batch or (self.drop_last and self.ended):
            raise StopIteration
        return self.collate_fn(batch)


def _is_plain(tensor):
    return (type(tensor) is flambeau.Tensor and not tensor.requires_grad
            and tensor.layout is flambeau.strided)

"""Loaders: epochs over data sets of different kinds."""

from importlib import import_module

from .registry import row


class Items:
    """A data set of 256 items, made by a function of their index."""

    def __init__(self, item, count=256):
        self.item, self.count = item, count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return self.item(i)


def epoch(torch, dataset, **options):
    data = import_module(torch.__name__ + ".utils.data")
    loader = data.DataLoader(dataset, **options)

    def run():
        for _ in loader:
            pass

    return run


def tensors(torch, *shape, count=256):
    return torch.randn(count, *shape)


@row("loaders", "pairs of a TensorDataset, shuffled")
def _pairs(torch):
    data = import_module(torch.__name__ + ".utils.data")
    dataset = data.TensorDataset(tensors(torch, 16), torch.arange(256))
    return epoch(torch, dataset, batch_size=32, shuffle=True)


@row("loaders", "dicts of tensors and numbers")
def _dicts(torch):
    x = tensors(torch, 16)
    return epoch(torch, Items(lambda i: {"x": x[i], "label": i, "weight": 0.5}), batch_size=32)


@row("loaders", "tuples of an image and a number")
def _images(torch):
    x = tensors(torch, 3, 32, 32)
    return epoch(torch, Items(lambda i: (x[i], i)), batch_size=32)


@row("loaders", "arrays of NumPy")
def _arrays(torch):
    x = tensors(torch, 16).numpy()
    return epoch(torch, Items(lambda i: (x[i], float(i))), batch_size=32)


@row("loaders", "nested lists and strings")
def _nested(torch):
    x = tensors(torch, 4)
    return epoch(torch, Items(lambda i: [x[i], [i, {"name": "one"}]]), batch_size=32)


@row("loaders", "sequences padded by collate_fn")
def _padded(torch):
    x = tensors(torch, 40)
    pad = torch.nn.utils.rnn.pad_sequence
    return epoch(torch, Items(lambda i: x[i, : 8 + i % 32]), batch_size=32,
                 collate_fn=lambda items: pad(items, batch_first=True))  # fmt: skip


@row("loaders", "weighted samples")
def _weighted(torch):
    data = import_module(torch.__name__ + ".utils.data")
    x = tensors(torch, 16)
    return epoch(torch, Items(lambda i: (x[i], i)), batch_size=32,
                 sampler=data.WeightedRandomSampler([1.0] * 256, 256))  # fmt: skip


@row("loaders", "an iterable data set")
def _iterable(torch):
    data = import_module(torch.__name__ + ".utils.data")
    x = tensors(torch, 16)

    class Stream(data.IterableDataset):
        def __iter__(self):
            return iter(x)

    return epoch(torch, Stream(), batch_size=32)


@row("loaders", "a subset of a split, without batches")
def _split(torch):
    data = import_module(torch.__name__ + ".utils.data")
    half, _ = data.random_split(data.TensorDataset(tensors(torch, 16)), [0.5, 0.5])
    return epoch(torch, half, batch_size=None)


@row("loaders", "two workers")
def _workers(torch):
    x = tensors(torch, 3, 32, 32)
    return epoch(torch, Items(lambda i: (x[i], i)), batch_size=32, num_workers=2)


@row("loaders", "two workers that persist")
def _persistent(torch):
    x = tensors(torch, 3, 32, 32, count=1024)
    return epoch(torch, Items(lambda i: (x[i % 1024], i), 2048), batch_size=32, num_workers=2,
                 persistent_workers=True)  # fmt: skip

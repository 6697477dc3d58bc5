"""Files of PyTorch, and files in memory, for the tests of what reads and writes them."""

import io
import zipfile
from pathlib import Path

import flambeau

FOLDER = Path(__file__).resolve().parents[1] / "data" / "checkpoints"


def load(name, **options):
    """What is in one of PyTorch's files."""
    return flambeau.load(FOLDER / f"{name}.pt", **options)


def saved(obj, **options):
    """A file in memory."""
    file = io.BytesIO()
    flambeau.save(obj, file, **options)
    file.seek(0)
    return file


def archive_of(pickled, storages=()):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", pickled)
        for key, data in enumerate(storages):
            archive.writestr(f"archive/data/{key}", data)
    file.seek(0)
    return file


def compressed_archive(pickled, compression):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        archive.writestr("x/data.pkl", pickled)
        archive.writestr("x/version", "3\n")
    file.seek(0)
    return file


def shared_entries():
    x = flambeau.arange(6.0)
    tied = flambeau.nn.Sequential(flambeau.nn.Linear(2, 2), flambeau.nn.Linear(2, 2))
    tied[1].weight = tied[0].weight
    return {"last": x[4:], "all": x, "columns": x.view(2, 3).t(), "tied": tied.state_dict()}


def entries(state):
    return [state["last"], state["all"], state["columns"], *state["tied"].values()]


def geometry(tensors):
    """Which tensors share a storage; its size, and where each is in it."""
    seen = {}
    return [(seen.setdefault(t.untyped_storage().data_ptr(), len(seen)),
             t.untyped_storage().nbytes(), t.storage_offset(), t.stride()) for t in tensors]


OWN = [(24, 4, (1,)), (24, 0, (1,)), (24, 0, (1, 3)), (16, 0, (2, 1)), (8, 0, (1,)),
       (16, 0, (2, 1)), (8, 0, (1,))]

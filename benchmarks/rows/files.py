"""Files: saving and loading."""

import io
import pickle
import tempfile
from pathlib import Path

from .modules import encoder, perceptron
from .registry import row

FOLDER = tempfile.TemporaryDirectory()
STATES = {
    "a perceptron": lambda torch: perceptron(torch).state_dict(),
    "a transformer": lambda torch: encoder(torch).state_dict(),
    "a tensor of 1 MB": lambda torch: torch.randn(512, 512),
    "8 tensors of 4 MB": lambda torch: {f"w{i}": torch.randn(1024, 1024) for i in range(8)},
}

for _name, _make in STATES.items():

    @row("files", f"save {_name}")
    def _save(torch, make=_make):
        state, path = make(torch), Path(FOLDER.name, torch.__name__)
        return lambda: torch.save(state, path)

    @row("files", f"load {_name}")
    def _load(torch, make=_make):
        path = Path(FOLDER.name, torch.__name__ + " to load")
        torch.save(make(torch), path)
        return lambda: torch.load(path)

    @row("files", f"save and load {_name} in memory")
    def _memory(torch, make=_make):
        state = make(torch)

        def run():
            file = io.BytesIO()
            torch.save(state, file)
            file.seek(0)
            return torch.load(file)

        return run


@row("files", "load 8 tensors of 4 MB, mapped")
def _mapped(torch):
    path = Path(FOLDER.name, torch.__name__ + " to map")
    torch.save(STATES["8 tensors of 4 MB"](torch), path)
    return lambda: torch.load(path, mmap=True)


@row("files", "100 small tensors through pickle")
def _pickled(torch):
    tensors = [torch.randn(20) for _ in range(100)]
    return lambda: pickle.loads(pickle.dumps(tensors))


@row("files", "a checkpoint of model and optimizer")
def _checkpoint(torch):
    model = encoder(torch)
    optimizer = torch.optim.Adam(model.parameters())
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    optimizer.step()
    path = Path(FOLDER.name, torch.__name__ + " checkpoint")

    def run():
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3},
                   path)
        kept = torch.load(path)
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])

    return run

"""Write checkpoints/*.pt with PyTorch, for the tests to read. Run with PyTorch installed."""

from collections import OrderedDict
from pathlib import Path

import numpy as np
import torch

DTYPES = [
    "float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool",
    "complex64", "complex128", "uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2",
]


def every_dtype():
    return {name: (torch.arange(4) % 2).to(getattr(torch, name)) for name in DTYPES}


def views():
    base = torch.arange(24.0)
    grid = base.view(4, 6)
    return {
        "base": base,
        "transposed": grid.t(),
        "column": grid[:, 2],
        "tail": base[20:],
        "steps": base[1::5],
        "expanded": torch.ones(1).expand(3, 2),
        "scalar": torch.tensor(2.5),
        "empty": torch.zeros(0, 3),
        "conj": torch.tensor([1 + 2j, 3 - 4j]).conj(),
        "neg": torch.tensor([1 + 2j, 3 - 4j]).conj().imag,
    }


def plain_objects():
    tensor = torch.ones(2)
    tensor.note = "kept"
    parameter = torch.nn.Parameter(torch.ones(2))
    parameter.tag = 3
    return {
        "numbers": [1, -5, 300, 70000, 2**40, -(2**70), 1.5, float("inf"), True, False, None],
        "tuples": ((), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)),
        "text": "häß\n",
        "bytes": b"\x00\xff",
        "bytearray": bytearray(b"ab"),
        "set": {1, 2},
        "complex": 1 - 2j,
        "ordered": OrderedDict(a=1, b=OrderedDict()),
        "size": torch.Size([2, 3]),
        "dtype": torch.bfloat16,
        "device": torch.device("cpu"),
        "layout": torch.strided,
        "parameter": torch.nn.Parameter(torch.tensor([1.0, 2.0])),
        "frozen": torch.nn.Parameter(torch.tensor([1.0]), requires_grad=False),
        "requires_grad": torch.ones(1, requires_grad=True),
        "attribute": tensor,
        "parameter_attribute": parameter,
        "meta": torch.empty(2, 3, device="meta"),
    }


def training():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4),
                                torch.nn.Linear(4, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.arange(15.0).view(5, 3)).square().mean().backward()
        optimizer.step()
        scheduler.step()
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(), "epoch": 3}


def quantized():
    grid = torch.arange(6.0).view(2, 3)
    scales, zeros = torch.tensor([0.5, 0.25]), torch.tensor([1, 0])
    return {
        "tensor": torch.quantize_per_tensor(grid, 0.1, 3, torch.quint8).t(),
        "channels": torch.quantize_per_channel(grid, scales, zeros, 0, torch.qint8),
        "float_zeros": torch.quantize_per_channel(grid, scales, zeros.float(), 0, torch.quint8),
        "dtype": torch.qint8, "scheme": torch.per_tensor_affine,
    }


def main():
    folder = Path(__file__).with_name("checkpoints")
    folder.mkdir(exist_ok=True)
    torch.save(every_dtype(), folder / "dtypes.pt")
    torch.save(views(), folder / "views.pt")
    torch.save(plain_objects(), folder / "objects.pt")
    torch.save(plain_objects(), folder / "objects_protocol5.pt", pickle_protocol=5)
    torch.save(training(), folder / "training.pt")
    torch.save({"array": np.arange(3.0), "scalar": np.float32(1.5)}, folder / "numpy.pt")
    torch.save({"coo": torch.eye(3).to_sparse(), "csr": torch.eye(3).to_sparse_csr()},
               folder / "sparse.pt")
    old = {"weight": torch.arange(6.0).view(2, 3).t(), "bf16": torch.ones(2).bfloat16(),
           "names": ["a"]}
    torch.save(old, folder / "legacy.pt", _use_new_zipfile_serialization=False)
    torch.save(torch.nn.Linear(2, 1), folder / "module.pt")
    torch.save(quantized(), folder / "quantized.pt")
    torch.save({"jagged": torch.nested.nested_tensor(
        [torch.arange(6.0).view(2, 3), torch.ones(1, 3)], layout=torch.jagged),
        "layout": torch.sparse_csr}, folder / "jagged.pt")


if __name__ == "__main__":
    main()

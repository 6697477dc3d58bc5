"""Record PyTorch's text for many arrays in printing.json. Run with PyTorch installed."""

import json
from pathlib import Path

import torch

# Each case: an expression that makes a tensor; the test evaluates the values recorded here.
VALUES = [
    ("float32", [1.0, 2.0, 3.0]),
    ("float32", [1.5, 2.25, -3.125]),
    ("float32", 3.0),
    ("float32", 3.14159265),
    ("float32", 1e-5),
    ("float32", 12345678.0),
    ("float32", 123456789.0),
    ("float32", "nan"),
    ("float32", "inf"),
    ("float32", [0.0, -0.0]),
    ("float32", [-0.0, 1.5]),
    ("float32", ["nan", "inf", "-inf", 0.0]),
    ("float32", ["nan", 1.0, "-inf"]),
    ("float32", ["nan", 1.5, "-inf"]),
    ("float32", ["nan", 1e-7, "-inf"]),
    ("float32", [1.0, 1000.0]),
    ("float32", [1.0, 1001.0]),
    ("float32", [0.5, 500.0]),
    ("float32", [0.5, 501.0]),
    ("float32", [0.5, 100000.0, -0.001]),
    ("float32", [1e-4, 2e-4]),
    ("float32", [9e-5, 2e-4]),
    ("float32", [1e8, 2e8]),
    ("float32", [1.5e8, 1e8 + 64]),
    ("float32", [1e38, 1e-38]),
    ("float32", [1e-45, 0.0]),
    ("float32", [9.99996, 9.99994]),
    ("float32", [0.00005, 0.1]),
    ("float32", [[1.0, 2.0], [3.5, -4.0]]),
    ("float32", [[[1.0], [2.0]], [[3.0], [4.0]]]),
    ("float32", [[[[1.5, 2.0]]], [[[3.0, 100.25]]]]),
    ("float64", [1.0, 2.0]),
    ("float64", [0.1, 1 / 3]),
    ("float64", [1e308, 1e-308]),
    ("float64", 1e300),
    ("float64", [4.9e-324, 1.0]),
    ("float16", [1.0, 2.5, 65504.0]),
    ("float16", [0.1, 6e-8]),
    ("bfloat16", [1.0, 2.5, 3e38]),
    ("bfloat16", [0.1, 0.2]),
    ("bfloat16", 0.1),
    ("float8_e5m2", [1.0, 0.1]),
    ("float8_e4m3fn", [1.0, 448.0]),
    ("bool", [True, False]),
    ("bool", [True, True]),
    ("bool", [False]),
    ("bool", True),
    ("bool", [[True, False], [False, False]]),
    ("int64", [1, 2, 300]),
    ("int64", [-1, 10, 5]),
    ("int64", 7),
    ("int64", [9223372036854775807, -9223372036854775808]),
    ("int64", [[1, 2], [3, 4]]),
    ("int32", [1, -2]),
    ("int16", [1, -200]),
    ("int8", [1, -128]),
    ("uint8", [0, 255]),
    ("uint16", [0, 65535]),
    ("uint32", [0, 4294967295]),
    ("uint64", [0, 18446744073709551615]),
    ("complex64", [[1.0, 2.0], [3.0, -4.0]]),
    ("complex64", [[1.5, -2.0], [-3.0, 1e-6]]),
    ("complex64", [["nan", "inf"], ["-inf", "nan"]]),
    ("complex64", [[0.0, 0.0], [-0.0, -0.0]]),
    ("complex64", [[100.0, 0.5], [1.0, 22.25]]),
    ("complex64", [1.5, 2.5]),
    ("complex128", [[1.0, 2.0]]),
    ("complex128", [[1e10, 1e-10], [0.0, 1.0]]),
]

RANGES = [  # dtype, shape, scale: arange(n).reshape(shape) * scale
    ("float32", [100], 1.0),
    ("float32", [100], 0.37),
    ("float32", [7, 13], -1.25),
    ("float32", [1000], 1.0),
    ("float32", [1001], 1.0),
    ("float32", [1001], 0.5),
    ("float32", [50, 50], 0.001),
    ("float32", [2, 600], 1.0),
    ("float32", [600, 2], 1.0),
    ("float32", [12, 10, 11], 0.01),
    ("float32", [2, 3, 4], 0.1),
    ("float32", [2, 1, 3, 5], 1.5),
    ("float32", [7, 7, 7, 7], 1.0),
    ("float32", [1, 2000], 1e-3),
    ("float32", [0], 1.0),
    ("float32", [0, 3], 1.0),
    ("float32", [3, 0, 2], 1.0),
    ("float64", [30, 40], 1.0),
    ("float64", [20], 1e6),
    ("float16", [40, 40], 0.125),
    ("bfloat16", [25], 0.25),
    ("int64", [0], 1),
    ("int64", [2, 0], 1),
    ("int64", [20, 30], 1),
    ("int64", [40, 30], -1000),
    ("int32", [10000], 3),
    ("uint8", [30], 5),
    ("bool", [30], 1),
    ("bool", [40, 40], 1),
    ("complex64", [12], 1.5),
    ("complex64", [33, 33], 1.0),
    ("complex128", [3, 4], -0.25),
]

OPTIONS = [
    {"precision": 2},
    {"precision": 10},
    {"precision": 0},
    {"threshold": 5},
    {"threshold": 5, "edgeitems": 1},
    {"edgeitems": 0},
    {"threshold": 5, "edgeitems": 0},
    {"linewidth": 40},
    {"linewidth": 200, "edgeitems": 2},
    {"profile": "short"},
    {"sci_mode": True},
    {"sci_mode": False},
    {"sci_mode": True, "precision": 1},
]

FOR_OPTIONS = [
    *(("values", *VALUES[i]) for i in (0, 1, 3, 11, 14, 17, 36, 43, 48, 60, 61)),
    ("range", "float32", [7, 13], -1.25),
    ("range", "int64", [4, 30], 1),
    ("range", "float32", [1001], 0.5),
]


def build(kind, dtype, *rest):
    dtype = getattr(torch, dtype)
    if kind == "range":
        shape, scale = rest
        count = 1
        for size in shape:
            count *= size
        numbers = torch.arange(count, dtype=torch.float64) * scale
        if dtype.is_complex:
            numbers = torch.complex(numbers, 1 - numbers / 3)
        if dtype == torch.bool:
            numbers = numbers % 3 == 0
        return numbers.to(dtype).reshape(shape)
    (values,) = rest

    def read(value):
        if isinstance(value, list):
            return [read(item) for item in value]
        return float(value) if isinstance(value, str) else value

    values = read(values)
    if dtype.is_complex and isinstance(values[0], list):
        pairs = torch.tensor(values, dtype=torch.float64)
        return torch.complex(pairs[..., 0].clone(), pairs[..., 1].clone()).to(dtype)
    if dtype.is_floating_point:
        return torch.tensor(values, dtype=torch.float64).to(dtype)
    return torch.tensor(values, dtype=dtype)

# Expressions: what a tensor shows besides its numbers.
EXPRESSIONS = [
    "torch.tensor([1.0, 2.0], requires_grad=True)",
    "torch.tensor([1.0, 2.0], requires_grad=True) * 2",
    "torch.tensor(1.0, requires_grad=True).exp()",
    "torch.ones(30, requires_grad=True)",
    "torch.ones(31, requires_grad=True) * 2",
    "torch.arange(13.0).requires_grad_()",
    "torch.arange(100.0).view(10, 10).requires_grad_().sum(0)",
    "torch.ones(2, 3, dtype=torch.float64, requires_grad=True) + 1",
    "torch.zeros(0)",
    "torch.zeros(0, dtype=torch.int64)",
    "torch.zeros(0, 3)",
    "torch.zeros(2, 0, 3, dtype=torch.bool)",
    "torch.zeros(0, requires_grad=True)",
    "torch.zeros(2, device='meta')",
    "torch.zeros(2, dtype=torch.int64, device='meta')",
    "torch.zeros(2, 3, device='meta', requires_grad=True)",
    "torch.tensor(3)",
    "torch.tensor(True)",
    "torch.tensor([True])",
    "torch.tensor(2.5, dtype=torch.float64)",
    "torch.tensor([1 + 2j])",
    "torch.tensor([1 + 2j], dtype=torch.complex128)",
    "torch.tensor([1.5], dtype=torch.bfloat16)",
    "torch.tensor(1.5, dtype=torch.float16)",
    "torch.nn.Parameter(torch.ones(2))",
    "torch.nn.Parameter(torch.ones(2), requires_grad=False)",
    "torch.nn.Parameter(torch.ones(1)) * 2",
    "[torch.ones(1), {'a': torch.zeros(1)}]",
    "torch.arange(2000).view(1000, 2)",
    "torch.arange(2000.0, dtype=torch.float64).view(20, 10, 10) / 7",
    "torch.ones(2, 3).t()",
    "torch.ones(1).expand(2, 3)",
    "torch.tensor([1.0, float('nan'), float('inf')], requires_grad=True)",
    "torch.tensor([1 + 2j, 3]).conj()",
    "torch.tensor([1 + 2j, 3]).conj().imag",
    "torch.eye(2).to_sparse()",
    "torch.eye(2).double().to_sparse().requires_grad_()",
    "torch.eye(2).to_sparse_csr()",
    "torch.zeros(2, 2).to_sparse()",
]


def main():
    cases = [(("values", *case), {}) for case in VALUES]
    cases += [(("range", *case), {}) for case in RANGES]
    cases += [(case, options) for options in OPTIONS for case in FOR_OPTIONS]
    records = []
    for case, options in cases:
        torch.set_printoptions(profile="default")
        torch.set_printoptions(**options)
        text = repr(build(*case))
        records.append({"make": case, "options": options, "repr": text})
    write("printing.json", records)
    torch.set_printoptions(profile="default")
    records = [{"expression": text, "repr": repr(eval(text)), "default": "float32"}
               for text in EXPRESSIONS]
    torch.set_default_dtype(torch.float64)
    records += [{"expression": text, "repr": repr(eval(text)), "default": "float64"}
                for text in EXPRESSIONS]
    write("printing_tensors.json", records)


def write(name, records):
    lines = ",\n".join(json.dumps(record) for record in records)
    Path(__file__).with_name(name).write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()

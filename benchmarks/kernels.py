"""Rows of native kernels beside NumPy: ``python benchmarks/kernels.py [-k WORD] [--size N]``.

A row is the fastest of several interleaved turns; the ratio is native time / NumPy's time.
"""

import argparse
import time

import numpy as np

from flambeau import kernels

UNARY = (
    "exp", "tanh", "sin", "cos", "sigmoid", "erf", "absolute", "sqrt", "log", "log1p", "expm1",
    "gelu", "silu", "relu", "isnan",
)  # fmt: skip
BINARY = ("add", "multiply", "divide", "maximum", "less", "power")
REDUCTIONS = ("sum", "mean", "max", "argmax", "logsumexp", "moments")


def seconds(function, arguments, repeat):
    start = time.perf_counter()
    for _ in range(repeat):
        function(*arguments)
    return (time.perf_counter() - start) / repeat


def versions(name):
    """A kernel, and its twin in NumPy."""
    kernel = getattr(kernels, name)
    return kernel, kernel.reference


def rows(size):
    """Name, native function, NumPy's, their arguments."""
    side = int(size**0.5)
    random = np.random.RandomState(0)
    x, y = (random.randn(side, side).astype("f4") for _ in range(2))
    positive, row, small = np.abs(x), y[0], x[0, :4].copy()
    for name in UNARY:
        argument = positive if name in ("sqrt", "log", "log1p") else x
        yield name, *versions(name), (argument,)
    for name in BINARY:
        yield name, *versions(name), (positive, y)
    yield "row broadcast", kernels.multiply, np.multiply, (x, row)
    yield "column broadcast", kernels.multiply, np.multiply, (x, row[:, None])
    narrow, triple = x.reshape(-1)[: side * side // 3 * 3].reshape(-1, 3), row[:3]
    yield "row broadcast of 3", kernels.multiply, np.multiply, (narrow, triple)
    yield "column broadcast of 3", kernels.multiply, np.multiply, (narrow, narrow[:, :1])
    yield "transposed", kernels.add, np.add, (x, y.T)
    yield "where", kernels.where, np.where, (x > 0, x, y)
    for dtype in ("f2", "f8", "i4"):
        yield f"cast {dtype}", kernels.cast, np.ndarray.astype, (x, np.dtype(dtype))
    for name in REDUCTIONS:
        for axis in (None, 0, 1):
            yield f"{name} {axis}", *versions(name), (x, axis)
    yield "cumsum 1", kernels.cumsum, np.cumsum, (x, 1)
    yield "4 elements: add", kernels.add, np.add, (small, small)
    yield "4 elements: exp", kernels.exp, np.exp, (small,)
    yield "4 elements: add 1.0", kernels.add, np.add, (small, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-k", default="", help="only rows that contain this word")
    parser.add_argument("--size", type=int, default=1 << 21, help="elements")
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    print(kernels.describe())
    print(f"{'row':20} {'native us':>10} {'numpy us':>10} {'ratio':>6}")
    for name, native, numpy, arguments in rows(options.size):
        if options.k not in name:
            continue
        repeat = 5000 if name.startswith("4 ") else 2
        a = b = float("inf")
        for _ in range(options.turns):
            a = min(a, seconds(native, arguments, repeat))
            b = min(b, seconds(numpy, arguments, repeat))
        print(f"{name:20} {a * 1e6:10.2f} {b * 1e6:10.2f} {a / b:6.2f}", flush=True)


if __name__ == "__main__":
    main()

"""Runs the calls of a file `*_calls.txt` on PyTorch or flambeau and says what came of them."""
import math
import re
from pathlib import Path

import numpy

KINDS = ("bool uint8 int32 int64 uint16 uint64 bfloat16 float32 complex32 complex64 float8_e5m2 "
         "float8_e4m3fn").split()


def calls(family):
    lines = Path(__file__).with_name(f"{family}_calls.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def names(torch):
    """What the calls speak of."""
    torch.manual_seed(0)
    randn = torch.randn

    def halves(*shape):
        """Numbers from -6 to 6, of both half types."""
        n = torch.arange(math.prod(shape)).reshape(shape)
        x = (n * 37 % 101 - 50) * 0.12
        return x.half(), x.bfloat16()

    def taking(function, *shape):
        """Which types of elements a function takes, and what it says of the others."""
        said = {}
        for kind in KINDS:
            x = torch.ones(shape or (2, 2)).to(getattr(torch, kind))
            try:
                function(x)
                message = "taken"
            except (RuntimeError, TypeError, ValueError) as error:
                named = re.match('"(.+)" not implemented for', str(error))
                message = named[1] if named else str(error)[:40]
            said.setdefault(message, []).append(kind)
        return said
    z = torch.view_as_complex((torch.arange(8.0).reshape(4, 2) * 1.1 - 3).half())
    return {
        "halves": halves, "taking": taking, "z": z, "zm": z.reshape(2, 2), "h": z.real.clone(),
        "mask": torch.tensor([True, False, True, False]),
        "numpy": numpy,
        "torch": torch, "F": torch.nn.functional, "i": torch.arange(6).reshape(2, 3),
        "x2": randn(2, 3), "x3": randn(2, 4, 3), "x4": randn(2, 8, 5, 5), "w4": randn(4, 8, 3, 3),
        "rm": torch.zeros(4), "rv": torch.ones(4), "x5": randn(2, 5), "t5": torch.tensor([1, 4]),
        "y5": torch.rand(2, 5), "lp": randn(5, 2, 4).log_softmax(2), "we": randn(10, 3),
        "q": randn(2, 4, 5, 8),
        "a": torch.arange(24.0).reshape(2, 3, 4), "v": torch.tensor([3.0, 1.0, 2.0]),
        "n": torch.tensor(2.0), "none": torch.ones(0), "b": torch.tensor([True, False, True]),
        "j": torch.tensor([2, 0, 1]), "k": torch.tensor([[0, -1], [1, 0]]),
        "cl": torch.arange(16.0).reshape(2, 2, 2, 2).to(memory_format=torch.channels_last),
    }  # fmt: skip


def shape_and_type(tensor):
    return f"{list(tensor.shape)} {tensor.dtype}"


def in_full(tensor):
    """Type, shape, strides, is it a view, and the values."""
    what = f"{tensor.dtype} {list(tensor.shape)} {tensor.stride()} {tensor._is_view()}"
    tensor = tensor.detach()
    return {what: [tensor.real.tolist(), tensor.imag.tolist()] if tensor.is_complex()
            else tensor.tolist()}


def in_digits(tensor):
    """Type, shape and the values, in digits that tell any two numbers of two bytes apart."""
    values = tensor.detach().to(complex if tensor.is_complex() else float).flatten().tolist()
    return f"{tensor.dtype} {list(tensor.shape)} " + " ".join(f"{v:.6g}" for v in values)


def described(value, describe):
    if isinstance(value, (tuple, list)):
        return [described(v, describe) for v in value]
    return describe(value) if hasattr(value, "dtype") else repr(value)


def answer(call, space, describe=shape_and_type):
    """What is to be said of the result, or the error with the start of its message."""
    try:
        return described(eval(call, dict(space)), describe)
    except Exception as error:
        return [type(error).__name__, str(error).split("\n")[0][:160]]

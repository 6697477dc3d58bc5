"""Runs the calls of `network_calls.txt` on PyTorch or flambeau and says what came of them."""
from pathlib import Path


def calls():
    lines = Path(__file__).with_name("network_calls.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def names(torch):
    """What the calls speak of."""
    torch.manual_seed(0)
    randn = torch.randn
    return {
        "torch": torch, "F": torch.nn.functional, "i": torch.arange(6).reshape(2, 3),
        "x2": randn(2, 3), "x3": randn(2, 4, 3), "x4": randn(2, 8, 5, 5), "w4": randn(4, 8, 3, 3),
        "rm": torch.zeros(4), "rv": torch.ones(4), "x5": randn(2, 5), "t5": torch.tensor([1, 4]),
        "y5": torch.rand(2, 5), "lp": randn(5, 2, 4).log_softmax(2), "we": randn(10, 3),
        "q": randn(2, 4, 5, 8),
    }  # fmt: skip


def described(value):
    if isinstance(value, (tuple, list)):
        return [described(v) for v in value]
    return f"{list(value.shape)} {value.dtype}" if hasattr(value, "dtype") else repr(value)


def answer(call, space):
    """The shape and type of the result, or the error with the start of its message."""
    try:
        return described(eval(call, dict(space)))
    except Exception as error:
        return [type(error).__name__, str(error).split("\n")[0][:160]]

"""Records what PyTorch answers, or raises, for expressions about derivatives and comparisons.

Run it with PyTorch: `python record_autograd.py`. It writes `autograd.json`, which the tests compare
with flambeau's answers to the same expressions.
"""
from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

SETUP = """
from torch.autograd import functional as F
x, y, s = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]), torch.tensor(2.0)
one = torch.ones(2)
close, T = torch.testing.assert_close, torch.tensor
const = lambda a: torch.ones(2)
apart = lambda a: torch.ones(2, requires_grad=True) * 3
linear = lambda a: a * 3
cube = lambda a: a ** 3
pair = lambda a: (a * 2, a.sum())
half = lambda a: (a, torch.ones(2))
wrong = lambda a: 3
sums = lambda f: lambda *a: f(*a).sum()
"""


def functional_cases() -> list[str]:
    found = []
    for name, rest in (("jacobian", ""), ("vjp", ", one"), ("jvp", ", one")):
        for function in ("const", "apart", "linear", "cube", "pair", "half", "wrong"):
            if function in ("pair", "half") and name == "vjp":
                continue
            for strict in (False, True):
                for graph in (False, True):
                    found.append(f"F.{name}({function}, x{rest}, strict={strict}, "
                                 f"create_graph={graph})")
        found += [f"F.{name}(linear, 3{rest})", f"F.{name}(lambda *a: a[0], (x, 3){rest})"]
    for name, rest in (("hessian", ""), ("vhp", ", one"), ("hvp", ", one")):
        for function in ("const", "apart", "linear", "cube"):
            for strict in (False, True):
                found.append(f"F.{name}(sums({function}), x{rest}, strict={strict})")
        for function in ("cube", "pair", "wrong"):
            found.append(f"F.{name}({function}, x{rest})")
    found += ["F.vjp(lambda a: a.sum(), x)", "F.vjp(linear, x)", "F.vjp(linear, x, torch.ones(3))",
              "F.vjp(linear, x, (one, one))", "F.jvp(linear, s)", "F.jvp(linear, x)",
              "F.hvp(cube, s)", "F.vhp(sums(cube), x)",
              "F.jacobian(cube, x, vectorize=True)",
              "F.jacobian(cube, x, vectorize=True, strategy='forward-mode')",
              "F.jacobian(cube, x, strategy='forward-mode')", "F.jacobian(cube, x, strategy='up')",
              "F.jacobian(cube, x, vectorize=True, strict=True)",
              "F.hessian(sums(cube), x, vectorize=True)",
              "F.hessian(sums(cube), x, vectorize=True, outer_jacobian_strategy='forward-mode')",
              "F.hessian(lambda a, b: (a * b * b).sum(), (x, y))",
              "F.jacobian(lambda a, b: (a * b, a.sum() * b), (x, y))"]
    return found


def comparison_cases() -> list[str]:
    pairs = ["T([1.0, 2, 3]), T([1.0, 2, 4])", "T([1, 2, 3]), T([1, 2, 4])", "T(1.0), T(2.0)",
             "1.0, 2.0", "1, 2", "1, 2.0", "True, False", "1 + 2j, 1 + 3j", "'a', 'b'",
             "None, None", "None, 1.0", "[1.0, 2.0], [1.0]", "[1.0, 2.0], [1.0, 3.0]",
             "{'a': 1.0}, {'b': 1.0}", "{'a': T([1.0])}, {'a': T([2.0])}",
             "T([1.0]), T([1.0, 1.0])", "T([1.0]), T([1.0], dtype=torch.float64)",
             "T([1.0]), T([1.0]), rtol=1", "T([1.0]), [1.0]", "T([True, False]), T([True, True])",
             "T([1.0]), T([2.0]), msg='hello'", "T([1.0]), T([2.0]), msg=lambda m: 'so: ' + m",
             "T([1.0]), T([2.0]), rtol=0.0, atol=0.0", "T([1.0, float('inf')]), T([1.0, 2.0])",
             "T([[1.0, 2], [3, 4]]).t(), T([[1.0, 3], [2, 4]]), check_stride=True",
             "T([1.0, float('nan')]), T([1.0, float('nan')])",
             "T([1.0, float('nan')]), T([1.0, float('nan')]), equal_nan=True",
             "T([1 + 1j]), T([1 + 2j])", "T([255], dtype=torch.uint8), T([0], dtype=torch.uint8)",
             "[[1.0], {'a': (1.0, 2.0)}], [[1.0], {'a': (1.0, 3.0)}]"]
    return [f"close({pair})" for pair in pairs]


def outcome(expression: str, names: dict[str, Any]) -> str:
    """What an expression gives, as text: the values of tensors without their history."""
    torch = names["torch"]

    def plain(value: Any) -> Any:
        if isinstance(value, (tuple, list)):
            return tuple(plain(v) for v in value)
        return value.detach() if isinstance(value, torch.Tensor) else value
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return repr(plain(eval(expression, names)))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def names_of(torch: Any) -> dict[str, Any]:
    names = {"torch": torch}
    exec(SETUP.replace("from torch.autograd import functional as F",
                       "F = torch.autograd.functional"), names)
    return names


if __name__ == "__main__":
    import torch
    import torch.autograd.functional
    cases = functional_cases() + comparison_cases()
    names = names_of(torch)
    target = Path(__file__).with_name("autograd.json")
    target.write_text(json.dumps({c: outcome(c, names) for c in cases}, indent=0) + "\n")

"""What a small call costs: ``python benchmarks/overhead.py``.

Times calls on tensors of a few elements with the C callables of `csrc/calling` and, in a second
process, without them (``FLAMBEAU_FAST=0``), and prints both and their ratio. A change to `core/`
shows these rows before and after.
"""
import json
import os
import subprocess
import sys
import timeit

ROWS = {
    "a + b": "a + b",
    "a + b, with grad": "x + b",
    "a * 2.0": "a * 2.0",
    "sin(x), with grad": "x.sin()",
    "a.add_(b)": "a.add_(b)",
    "m[1]": "m[1]",
    "m[1:3, ::2]": "m[1:3, ::2]",
    "m.view(2, 8)": "m.view(2, 8)",
    "m.t()": "m.t()",
    "m.sum(dim=1)": "m.sum(dim=1)",
    "m @ m": "m @ m",
    "cat([a, b])": "cat([a, b])",
    "zeros(2, 3)": "zeros(2, 3)",
    "tensor(list)": "tensor(data)",
    "backward of 200 ops": "chain()",
}


def chain(x, b):
    y = x
    for _ in range(100):
        y = y * b + x
    y.sum().backward()
    x.grad = None


def measure():
    """Seconds a call for each row: the fastest of some repeats."""
    import flambeau

    a, b = flambeau.ones(4), flambeau.zeros(4)
    x = flambeau.ones(4, requires_grad=True)
    names = {"a": a, "b": b, "x": x, "m": flambeau.ones(4, 4), "data": [[1.0, 2.0], [3.0, 4.0]],
             "cat": flambeau.cat, "zeros": flambeau.zeros, "tensor": flambeau.tensor,
             "chain": lambda: chain(x, b)}
    seconds = {}
    for name, code in ROWS.items():
        timer = timeit.Timer(code, globals=names)
        number = max(1, int(0.02 / (timer.timeit(10) / 10)))
        seconds[name] = min(timer.repeat(7, number)) / number
    return seconds


def main():
    if "--measure" in sys.argv:
        print(json.dumps(measure()))
        return
    found = []
    for fast in "10":
        answer = subprocess.run(
            [sys.executable, __file__, "--measure"], env={**os.environ, "FLAMBEAU_FAST": fast},
            check=True, capture_output=True, text=True)
        found.append(json.loads(answer.stdout))
    print(f"{'row':24s} {'C':>10s} {'Python':>10s}   ratio")
    for name in ROWS:
        with_c, without = (seconds[name] * 1e6 for seconds in found)
        print(f"{name:24s} {with_c:7.2f} us {without:7.2f} us   {with_c / without:5.2f}")


if __name__ == "__main__":
    main()

"""Short scripts, kept in `scripts/`, and a way to run them: on PyTorch to record, on ours to test.

What a script prints, the value of one that is an expression, what it raises and what it warns of
make one text. The scripts of a test file have its path: those of `modules/test_rnn.py` are in
`scripts/modules/rnn.txt`.
"""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "scripts"


def scripts():
    """{topic: [code, …]}."""
    return {
        path.relative_to(FOLDER).with_suffix("").as_posix(): [
            code.strip("\n") for code in path.read_text().split("\n---\n")]
        for path in sorted(FOLDER.rglob("*.txt"))
    }


def run_script(code, torch):
    """The text that a script gives with `torch` and its `nn`."""
    names = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional}
    out = io.StringIO()
    torch.manual_seed(0)
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(out):
        warnings.simplefilter("always")
        try:
            try:
                compiled, is_value = compile(code, "<script>", "eval"), True
            except SyntaxError:
                compiled, is_value = compile(code, "<script>", "exec"), False
            if is_value:
                print(repr(eval(compiled, names)))
            else:
                exec(compiled, names)
        except Exception as error:
            print("raises", type(error).__name__, error)
    said = [f"warns {w.category.__name__} {w.message}\n" for w in caught]
    return normalized(out.getvalue() + "".join(said))


def normalized(text):
    text = re.sub(r"0x[0-9a-f]+", "0x", text)
    text = re.sub(r"OrderedDict\(\[\(\d+, <", "OrderedDict([(0, <", text)
    text = re.sub(r"grad_fn=<\w+>", "grad_fn=<node>", text)
    text = re.sub(r" \(Triggered internally at .*", "", text)
    # Our message goes on to name lines of code; PyTorch warns of a library that we don't use.
    text = re.sub(r"\s+The node that was freed is [^\n]*(\n  [^\n]*)*"
                  r"(\nIts saved values were freed [^\n]*(\n  [^\n]*)*)?", "", text)
    text = re.sub(r"warns UserWarning [^\n]*oneDNN[^\n]*\n?", "", text)
    # Functions and nodes print as what they are made of.
    text = re.sub(r"parameter in <[^>]*>+", "parameter in <function>", text)
    text = re.sub(r"<(?:built-in |)(?:function|method) '?(\w+)[^>]*>+", r"<\1>", text)
    text = text.replace("<torch.autograd.function.", "<").replace("<flambeau.", "<torch.")
    return text.replace("flambeau.", "torch.")


NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d*(?:e[+-]?\d+)?")


def differences(ours, theirs):
    """What differs but for the last digits of numbers and runs of blanks; None if nothing does."""
    split = [(NUMBER.sub("#", text).split(), NUMBER.findall(text)) for text in (ours, theirs)]
    if split[0][0] != split[1][0]:
        return "text"
    for a, b in zip(split[0][1], split[1][1]):
        if abs(float(a) - float(b)) > 2e-4 * max(1.0, abs(float(b))):
            return f"{a} for {b}"
    return None

"""Writes flambeau/schema/signatures.txt: what PyTorch's functions and methods take, as
its own parser of arguments is told.

Run where PyTorch is installed: `python tests/data/record_signatures.py`.

The signatures stand as text in PyTorch's extension. Which of a name's belong to the function, which
to the method, and in which order they are tried, is said by the error of a call that fits none.

The first line of the file names the methods that take nothing, the second the functions of
`nn.functional` that have a parser. Then: `name(...)` is a signature of a function, `name:(...)` of
a function and, without the input and `out`, of a method, `.name(...)` of a method.
"""
import importlib
import re
from pathlib import Path

import torch

import flambeau
from flambeau.core.op import public

RULES = Path(flambeau.__file__).parent / "ops" / "forwarding.py"     # speak of inner functions too
SPACES = {"torch": torch, "linalg": torch.linalg, "fft": torch.fft, "special": torch.special,
          "nn.functional": torch.nn.functional}
PREFIXES = {"linalg": "linalg_", "fft": "fft_", "special": "special_"}
TOO_MANY = {f"no_such_{i}": 1 for i in range(60)}
TYPES = {"int64_t": "int", "SymInt": "int", "double": "float", "c10::string_view": "str",
         "IntArrayRef": "int[]", "SymIntArrayRef": "int[]", "TensorList": "Tensor[]",
         "ArrayRef<double>": "float[]", "ArrayRef<Scalar>": "Scalar[]", "ScalarList": "Scalar[]",
         "DimnameList": "Dimname[]", "c10::List<::std::optional<Tensor>>": "Tensor[]",
         "PyObject*": "object"}
TITLES = {"Scalar": "Number", "ScalarType": "torch.dtype", "Layout": "torch.layout",
          "Device": "torch.device", "MemoryFormat": "torch.memory_format", "Dimname": "name",
          "Generator": "torch.Generator", "Storage": "torch.Storage"}
PLURALS = {"Number": "Scalar"}
OPTIONS = ("ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
           "bool? pin_memory=False, bool? requires_grad=False")


def texts():
    """All signatures in the extension, by name."""
    path = next((Path(torch.__file__).parent / "lib").glob("libtorch_python.*"))
    found = {}
    for raw in re.findall(rb"[a-zA-Z_0-9]+\([A-Za-z*][^\0\n]*\)(?:\|deprecated|\|hidden)?\0|"
                          rb"[a-z_0-9]+\(\)\0", path.read_bytes()):
        text = raw[:-1].decode("ascii", "ignore")
        name, _, rest = text.partition("(")
        if re.match(r"(\)|\*, |[\w:<>\[\]*]+\?? \w)", rest):
            found.setdefault(name, []).append(rest)
    return {name: sorted({*each}) for name, each in found.items()}


def short(text):
    """A signature with the types of the schemas."""
    def of(match):
        kind, size, none = match.groups()
        kind = TYPES.get(kind, kind)
        return (kind.replace("[]", size) if size else kind) + none
    text = re.sub(r"(?<![=\w.])([A-Za-z][\w:<>*]*)(\[\d+\])?(\??)(?= \w)", of, text)
    return text.replace(OPTIONS, "OPTIONS")


def printed(text):
    """The start of a signature as messages show it: titles of types and names."""
    shown = []
    inside = text.replace("OPTIONS", OPTIONS).partition("|")[0].removesuffix(")")
    for part in filter(None, re.split(r", (?![^\[]*\])", inside)):
        kind, _, rest = part.partition(" ")
        kind, bracket, _ = kind.removesuffix("?").partition("[")
        kind = TITLES.get(kind, kind)
        if bracket:
            kind = f"tuple of {PLURALS.get(kind, kind)}s"
        shown.append("*" if part == "*" else f"{kind} " + rest.partition("=")[0])
    return tuple(shown)


def listed(call):
    """The signatures that the message of a call lists, in order; None if it lists none."""
    try:
        call(**TOO_MANY)
    except TypeError as error:
        lines = re.findall(r"^ \* \((.*)\)$", str(error), re.M)
        if lines:
            return [tuple([re.sub(r" = .*", "", part)
                           for part in filter(None, re.split(r", (?=\*|[\w.]+ )", line))])
                    for line in lines]
    except Exception:           # of a function that takes anything
        return None
    return None


def takes_input(text):
    return re.search(r" input\b", text) is not None


def chosen(call, candidates, method):
    order = listed(call)
    if order is None:           # a storage's has the same name
        candidates = [each for each in candidates if not each.startswith("Storage ")]
    shown = {printed(each): each for each in candidates if "|" not in each}
    if order is not None and all(each in shown for each in order):
        visible = [shown[each] for each in order]
    else:
        if order is not None:
            print("not found:", call, order, [*shown])
        inputs = [each for each in shown.values() if takes_input(each)]
        visible = [each for each in shown.values() if each not in inputs] \
            if method else inputs or [*shown.values()]
    hidden = [each for each in candidates if "|" in each and takes_input(each) != method]
    return hidden + visible


def is_native(function):
    return type(function).__name__ in ("builtin_function_or_method", "method_descriptor")


def takes_nothing(method):
    return all(words in said_of(method, args, kwargs) for words, args, kwargs in (
        ("takes no keyword arguments", (), TOO_MANY), ("takes no arguments", (object(),), {})))


def said_of(method, args, kwargs):
    try:
        method(torch.ones(()), *args, **kwargs)
    except TypeError as error:
        return str(error)
    except Exception:
        return ""
    return ""


def main():
    known, functions, methods, bare, layers = texts(), {}, {}, [], []
    for space, module in SPACES.items():
        for name in public.get(space, {}):
            function = getattr(module, name, None)
            if is_native(function):
                c_name = function.__name__
                if c_name in known:
                    layers += [name] if space == "nn.functional" else []
                    functions[c_name] = chosen(function, [*map(short, known[c_name])], False)
    spoken_of = {*re.findall(r"\w+", RULES.read_text())}
    for module in (torch._C._nn, torch._C._VariableFunctions, torch._C._sparse):
        for name in dir(module):
            if name not in functions and name in known and is_native(getattr(module, name)) and (
                    (module is torch._C._nn and not name.startswith("_test"))
                    or {name, name.removesuffix("_")} & spoken_of):
                functions[name] = chosen(getattr(module, name), [*map(short, known[name])], False)
    x = torch.ones(())
    for name in dir(flambeau.Tensor):
        method = getattr(torch.Tensor, name, None)
        if not is_native(method):
            continue
        if takes_nothing(method):
            bare.append(name)
        elif name in known:
            methods[name] = chosen(getattr(x, name), [*map(short, known[name])], True)
    lines = [" ".join(sorted(bare)), " ".join(sorted(layers))]
    for name in sorted({*functions, *methods}):
        ours, theirs = functions.get(name, []), methods.get(name, [])
        derived = [re.sub(r"(, )?(\*, )?Tensor(\[\d\])? out=None", "",
                          each.replace("Tensor input, ", "").replace("Tensor input)", ")"))
                   for each in ours]
        mark = ":" if theirs == derived and theirs else ""
        lines += [f"{name}{mark}({each}" for each in ours]
        if not mark:
            lines += [f".{name}({each}" for each in theirs]
    path = Path(__file__).parents[2] / "flambeau" / "schema" / "signatures.txt"
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    importlib.import_module("flambeau.ops").load()
    main()

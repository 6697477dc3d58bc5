"""Exported programs in files: `.pt2` archives, whose graph is JSON and whose tensors are bytes."""
from __future__ import annotations

import ast
import io
import json
import operator
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

import flambeau
from flambeau import Tensor, fx, nn
from flambeau.export import _overloads
from flambeau.export import graph_signature as gs
from flambeau.export._sizes import Expression, Symbol, ValueRange
from flambeau.export.dynamic_shapes import int_oo
from flambeau.export.exported_program import (
    ExportedProgram,
    ModuleCallEntry,
    ModuleCallSignature,
)
from flambeau.utils import _pytree

_DTYPES = ["uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64",
           "complex32", "complex64", "complex128", "bool", "bfloat16"]
_DTYPE_NUMBERS = {getattr(flambeau, name): i + 1 for i, name in enumerate(_DTYPES)} | {
    flambeau.uint16: 28, flambeau.float8_e4m3fn: 29, flambeau.float8_e5m2: 30,
    flambeau.float8_e4m3fnuz: 31, flambeau.float8_e5m2fnuz: 32}
_DTYPE_OF = {n: dtype for dtype, n in _DTYPE_NUMBERS.items()}
_FORMATS = [flambeau.contiguous_format, flambeau.channels_last, flambeau.channels_last_3d,
            flambeau.preserve_format]
_STRIDED = 7
_SCALARS: dict[str, Any] = {"_operator.mul": operator.mul, "_operator.add": operator.add,
                            "_operator.floordiv": operator.floordiv, "_operator.sub": operator.sub,
                            "_operator.ge": operator.ge, "_operator.le": operator.le,
                            "_operator.eq": operator.eq, "_operator.gt": operator.gt,
                            "_operator.lt": operator.lt}


# ---- writing ------------------------------------------------------------------------------------

def _size(value: Any) -> dict[str, Any]:
    if isinstance(value, int):
        return {"as_int": value}
    return {"as_expr": {"expr_str": _formula(value), "hint": {"as_int": value.hint}}}


def _formula(value: Any) -> str:
    """An expression of sizes as PyTorch's files have it."""
    if isinstance(value, Symbol):
        return f"Symbol('{value.name}', positive=True, integer=True)"
    sums = []
    for factor, symbols in value.terms:
        parts = [_formula(s) for s in symbols]
        if factor != 1 or not parts:
            parts.insert(0, f"Integer({factor})")
        sums.append(parts[0] if len(parts) == 1 else f"Mul({', '.join(parts)})")
    text = sums[0] if len(sums) == 1 else f"Add({', '.join(sums)})"
    return text if value.divisor == 1 else f"FloorDiv({text}, Integer({value.divisor}))"


def _tensor(value: Tensor, sizes: Any = None) -> dict[str, Any]:
    return {"dtype": _DTYPE_NUMBERS[value.dtype],
            "sizes": [_size(n) for n in (value.shape if sizes is None else sizes)],
            "requires_grad": value.requires_grad, "device": {"type": "cpu", "index": None},
            "strides": [_size(n) for n in value.stride()],
            "storage_offset": {"as_int": 0}, "layout": _STRIDED}


def _is_number(value: Any) -> bool:
    return isinstance(value, fx.Node) and isinstance(value.meta.get("val"), (Symbol, Expression))


def _argument(value: Any) -> dict[str, Any]:
    """A value in the file's union of types."""
    if isinstance(value, fx.Node):
        return {"as_sym_int": {"as_name": value.name}} if _is_number(value) \
            else {"as_tensor": {"name": value.name}}
    if isinstance(value, (list, tuple)):
        return _list(list(value))
    simple = {type(None): ("as_none", True), bool: ("as_bool", value), int: ("as_int", value),
              float: ("as_float", value), str: ("as_string", value)}
    if type(value) in simple:
        name, held = simple[type(value)]
        return {name: held}
    if isinstance(value, complex):
        return {"as_complex": {"real": value.real, "imag": value.imag}}
    if isinstance(value, flambeau.dtype):
        return {"as_scalar_type": _DTYPE_NUMBERS[value]}
    if isinstance(value, flambeau.device):
        return {"as_device": {"type": value.type, "index": value.index}}
    if isinstance(value, flambeau.memory_format):
        return {"as_memory_format": _FORMATS.index(value) + 1}
    if isinstance(value, flambeau.layout):
        return {"as_layout": _STRIDED}
    raise NotImplementedError(f"export.save: an argument of type {type(value).__name__}")


def _list(values: list[Any]) -> dict[str, Any]:
    if any(_is_number(v) for v in values):
        return {"as_sym_ints": [{"as_name": v.name} if _is_number(v) else {"as_int": v}
                                for v in values]}
    if any(isinstance(v, fx.Node) for v in values):
        if all(isinstance(v, fx.Node) for v in values):
            return {"as_tensors": [{"name": v.name} for v in values]}
        return {"as_optional_tensors": [_argument(v) for v in values]}
    for kind, name in ((bool, "as_bools"), (int, "as_ints"), (float, "as_floats"),
                       (str, "as_strings")):
        if all(type(v) is kind for v in values):
            return {name: values} if values or kind is int else {"as_ints": []}
    if all(isinstance(v, (int, float)) for v in values):
        return {"as_floats": [float(v) for v in values]}
    raise NotImplementedError(f"export.save: a list of {values}")


class _Writer:
    """The parts of a program as what JSON can hold."""

    def __init__(self, program: ExportedProgram):
        self.program = program
        self.tensors: dict[str, Any] = {}
        self.numbers: dict[str, Any] = {}

    def _note(self, node: fx.Node) -> None:
        value = node.meta.get("val")
        if isinstance(value, Tensor):
            self.tensors[node.name] = _tensor(value, node.meta.get("sizes"))
        elif isinstance(value, (Symbol, Expression)):
            self.numbers[node.name] = _size(value)

    def _outputs(self, node: fx.Node) -> list[Any]:
        self._note(node)
        if "val" in node.meta:
            return [_argument(node)]
        parts = {user.args[1]: user for user in node.users if user.target is operator.getitem}
        names = []
        for i in range(max(parts, default=-1) + 1):
            if i in parts:
                self._note(parts[i])
            names.append({"name": parts[i].name if i in parts else f"{node.name}_unused_{i}"})
        schema = getattr(node.target, "_schema", None)
        if schema is not None and schema.returns[0].declared.endswith("[]"):
            return [{"as_tensors": names}]
        return [{"as_tensor": name} for name in names]

    def _node(self, node: fx.Node) -> dict[str, Any]:
        name = node.target.__name__
        if node.target.__module__ == "_operator":
            target, names = f"_operator.{name}", ["a", "b"]
        else:
            target = fx.node._get_qualified_name(node.target)
            names = [a.name for a in node.target._schema.arguments]
        inputs = [{"name": n, "arg": _argument(value), "kind": 1}
                  for n, value in zip(names, node.args)]
        inputs += [{"name": n, "arg": _argument(value), "kind": 2}
                   for n, value in node.kwargs.items()]
        stack = ";".join(f"{key or 'L__self__'},{path},{kind}" for key, (path, kind)
                         in node.meta.get("nn_module_stack", {}).items())
        metadata = {"stack_trace": node.stack_trace} if node.stack_trace else {}
        return {"target": target, "inputs": inputs, "outputs": self._outputs(node),
                "metadata": {**metadata, **({"nn_module_stack": stack} if stack else {})},
                "is_hop_single_tensor_return": None, "name": node.name}

    def graph(self) -> dict[str, Any]:
        """The graph."""
        inputs, nodes, outputs = [], [], []
        specs = {s.arg.name: s for s in self.program.graph_signature.input_specs}
        for node in self.program.graph.nodes:
            if node.op == "placeholder":
                arg = specs[node.name].arg
                self._note(node)
                inputs.append(_argument(arg.value if isinstance(arg, gs.ConstantArgument)
                                        else node))
            elif node.op == "output":
                outputs = [_argument(value) for value in node.args[0]]
            elif node.target is not operator.getitem:
                nodes.append(self._node(node))
        return {"inputs": inputs, "outputs": outputs, "nodes": nodes,
                "tensor_values": self.tensors, "sym_int_values": self.numbers,
                "sym_bool_values": {}, "is_single_tensor_return": False, "custom_obj_values": {},
                "sym_float_values": {}}

    @staticmethod
    def _input_spec(spec: Any) -> dict[str, Any]:
        name = {"name": spec.arg.name}
        if spec.kind is gs.InputKind.PARAMETER:
            return {"parameter": {"arg": name, "parameter_name": spec.target}}
        if spec.kind is gs.InputKind.BUFFER:
            return {"buffer": {"arg": name, "buffer_name": spec.target,
                               "persistent": bool(spec.persistent)}}
        if spec.kind is gs.InputKind.CONSTANT_TENSOR:
            return {"tensor_constant": {"arg": name, "tensor_constant_name": spec.target}}
        if isinstance(spec.arg, gs.ConstantArgument):
            return {"constant_input": {"name": spec.arg.name, "value": _argument(spec.arg.value)}}
        return {"user_input": {"arg": {"as_tensor": name}}}

    @staticmethod
    def _output_spec(spec: Any, value: Any) -> dict[str, Any]:
        if spec.kind is gs.OutputKind.USER_OUTPUT:
            return {"user_output": {"arg": _argument(value)}}
        held = {"name": spec.arg.name}
        return {gs.OutputKind.BUFFER_MUTATION:
                {"buffer_mutation": {"arg": held, "buffer_name": spec.target}},
                gs.OutputKind.PARAMETER_MUTATION:
                {"parameter_mutation": {"arg": held, "parameter_name": spec.target}},
                gs.OutputKind.USER_INPUT_MUTATION:
                {"user_input_mutation": {"arg": held, "user_input_name": spec.target}},
                }[spec.kind]

    def document(self) -> dict[str, Any]:
        """All that is no tensor."""
        program = self.program
        graph = self.graph()
        results = program.graph.output_node().args[0]
        calls = [{"fqn": entry.fqn, "signature": entry.signature and {
            "inputs": [], "outputs": [],
            "in_spec": _pytree.treespec_dumps(entry.signature.in_spec),
            "out_spec": _pytree.treespec_dumps(entry.signature.out_spec),
            "forward_arg_names": entry.signature.forward_arg_names}}
            for entry in program.module_call_graph]
        signature = program.graph_signature
        return {
            "graph_module": {
                "graph": graph, "module_call_graph": calls, "metadata": {},
                "treespec_namedtuple_fields": {},
                "signature": {
                    "input_specs": [self._input_spec(s) for s in signature.input_specs],
                    "output_specs": [self._output_spec(s, v) for s, v
                                     in zip(signature.output_specs, results)]}},
            "opset_version": {"aten": 10},
            "range_constraints": {
                s.name: {"min_val": r.lower, "max_val": None if r.upper == int_oo else r.upper}
                for s, r in program.range_constraints.items()},
            "schema_version": {"major": 8, "minor": 20}, "verifiers": [program.dialect],
            "torch_version": flambeau.__version__, "guards_code": []}


def _weights(tensors: dict[str, Tensor], prefix: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    config, files = {}, {}
    for i, (name, value) in enumerate(tensors.items()):
        path = f"{prefix}_{i}"
        plain = value.detach().contiguous()
        files[path] = bytes(plain.untyped_storage()) if plain.numel() and \
            plain.untyped_storage().nbytes() == plain.numel() * plain.element_size() else \
            plain.view(flambeau.uint8).numpy().tobytes() if plain.ndim else \
            plain.reshape(1).view(flambeau.uint8).numpy().tobytes()
        meta = _tensor(plain) | {"requires_grad": value.requires_grad}
        config[name] = {"path_name": path, "is_param": isinstance(value, nn.Parameter),
                        "use_pickle": False, "tensor_meta": meta}
    return {"config": config}, files


def write(program: ExportedProgram, f: Any, extra_files: dict[str, Any]) -> None:
    """Write a program."""
    name = Path(f).stem if isinstance(f, (str, os.PathLike)) else "archive"
    weights, weight_files = _weights(dict(program.state_dict), "weight")
    constants, constant_files = _weights(dict(program.constants), "tensor")
    entries: dict[str, bytes] = {f"data/weights/{k}": v for k, v in weight_files.items()}
    entries["data/weights/model_weights_config.json"] = json.dumps(weights).encode()
    entries |= {f"data/constants/{k}": v for k, v in constant_files.items()}
    entries["data/constants/model_constants_config.json"] = json.dumps(constants).encode()
    entries["models/model.json"] = json.dumps(_Writer(program).document()).encode()
    if program.example_inputs is not None:
        held = io.BytesIO()
        flambeau.save(program.example_inputs, held)
        entries["data/sample_inputs/model.pt"] = held.getvalue()
    for path, content in extra_files.items():
        entries[f"extra/{path}"] = content.encode() if isinstance(content, str) else content
    entries |= {"archive_format": b"pt2", "archive_version": b"0", ".data/version": b"6\n",
                "byteorder": b"little"}
    with zipfile.ZipFile(f, "w", zipfile.ZIP_STORED) as archive:
        for path, content in entries.items():
            archive.writestr(f"{name}/{path}", content)


# ---- reading ------------------------------------------------------------------------------------

def _parsed(text: str, hints: dict[str, int]) -> Any:
    """An expression of sizes, from PyTorch's text. Nothing is evaluated."""
    def build(node: ast.expr) -> Any:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            kind = node.func.id
            if kind == "Symbol":
                name = ast.literal_eval(node.args[0])
                return Symbol(name, hints.get(name, 0))
            if kind in ("Integer", "int"):
                return ast.literal_eval(node.args[0])
            parts = [build(arg) for arg in node.args]
            if kind == "Mul":
                return _product(parts)
            if kind == "Add":
                return _sum(parts)
            if kind == "FloorDiv" and isinstance(parts[1], int):
                return Expression(_terms(parts[0]), parts[1])
        raise NotImplementedError(f"export.load: the size {text}")
    return build(ast.parse(text, mode="eval").body)


def _terms(value: Any) -> tuple[tuple[int, tuple[Symbol, ...]], ...]:
    if isinstance(value, int):
        return ((value, ()),)
    return ((1, (value,)),) if isinstance(value, Symbol) else value.terms


def _product(parts: list[Any]) -> Any:
    terms: Any = ((1, ()),)
    for part in parts:
        terms = tuple([(a * b, (*s, *t)) for a, s in terms for b, t in _terms(part)])
    return Expression(terms)


def _sum(parts: list[Any]) -> Any:
    return Expression(tuple([term for part in parts for term in _terms(part)]))


class _Reader:
    """A program from what JSON holds."""

    def __init__(self, document: dict[str, Any]):
        self.document, self.graph = document, fx.Graph()
        self.held = document["graph_module"]["graph"]
        self.nodes: dict[str, Any] = {}
        self.hints: dict[str, int] = {}
        for value in (*(s for t in self.held["tensor_values"].values() for s in t["sizes"]),
                      *self.held["sym_int_values"].values()):
            held = value.get("as_expr")
            if held and held["expr_str"].startswith("Symbol("):
                name = ast.literal_eval(ast.parse(held["expr_str"]).body[0].value.args[0])
                self.hints[name] = (held.get("hint") or {}).get("as_int", 0)

    def _size(self, value: dict[str, Any]) -> Any:
        return value["as_int"] if "as_int" in value else _parsed(
            value["as_expr"]["expr_str"], self.hints)

    def _describe(self, node: fx.Node) -> None:
        held = self.held["tensor_values"].get(node.name)
        if held is not None:
            sizes = tuple([self._size(s) for s in held["sizes"]])
            shape = [s if isinstance(s, int) else s.hint for s in sizes]
            node.meta["val"] = flambeau.empty(
                shape, dtype=_DTYPE_OF[held["dtype"]], device="meta",
                requires_grad=held["requires_grad"])
            node.meta["sizes"] = sizes
        elif node.name in self.held["sym_int_values"]:
            node.meta["val"] = self._size(self.held["sym_int_values"][node.name])

    def value(self, held: dict[str, Any]) -> Any:
        """A value of the file's union of types."""
        (kind, value), = held.items()
        if kind == "as_none":
            return None
        if kind in ("as_int", "as_float", "as_bool", "as_string", "as_ints", "as_floats",
                    "as_bools", "as_strings"):
            return float(value) if kind == "as_float" else value
        if kind in ("as_tensor", "as_sym_int", "as_sym_float", "as_sym_bool"):
            if not value.get("name", value.get("as_name")):
                return next(iter(value.values()))
            return self.nodes[value.get("name") or value["as_name"]]
        if kind == "as_tensors":
            return [self.nodes[v["name"]] for v in value]
        if kind == "as_optional_tensors":
            return [self.value(v) for v in value]
        if kind == "as_sym_ints":
            return [self.nodes[v["as_name"]] if "as_name" in v else v["as_int"] for v in value]
        if kind == "as_scalar_type":
            return _DTYPE_OF[value]
        if kind == "as_device":
            return flambeau.device(value["type"])
        if kind == "as_memory_format":
            return _FORMATS[value - 1]
        if kind == "as_layout":
            return flambeau.strided
        if kind == "as_complex":
            return complex(value["real"], value["imag"])
        raise NotImplementedError(f"export.load: an argument of kind {kind}")

    def _placeholder(self, name: str) -> fx.Node:
        node = self.graph.placeholder(name)
        node.name = name
        self.graph._used_names.add(name)
        return node

    def _placeholders(self) -> list[gs.InputSpec]:
        specs = []
        for held in self.document["graph_module"]["signature"]["input_specs"]:
            (kind, spec), = held.items()
            if kind == "constant_input":
                value = self.value(spec["value"])
                node = self._placeholder(spec["name"])
                node.meta["val"] = value
                arg: Any = gs.ConstantArgument(spec["name"], value)
                specs.append(gs.InputSpec(gs.InputKind.USER_INPUT, arg, None))
                continue
            named = spec["arg"].get("as_tensor") or spec["arg"]
            if "name" not in named:
                raise NotImplementedError(f"export.load: an input of kind {kind}: {spec}")
            node = self._placeholder(named["name"])
            self.nodes[node.name] = node
            self._describe(node)
            arg = gs.TensorArgument(node.name)
            made = {"parameter": (gs.InputKind.PARAMETER, "parameter_name"),
                    "buffer": (gs.InputKind.BUFFER, "buffer_name"),
                    "tensor_constant": (gs.InputKind.CONSTANT_TENSOR, "tensor_constant_name"),
                    "user_input": (gs.InputKind.USER_INPUT, "")}
            if kind not in made:
                raise NotImplementedError(f"export.load: an input of kind {kind}")
            what, key = made[kind]
            specs.append(gs.InputSpec(what, arg, spec.get(key), spec.get("persistent")))
        return specs

    def _step(self, held: dict[str, Any]) -> None:
        args = tuple([self.value(i["arg"]) for i in held["inputs"] if i["kind"] != 2])
        kwargs = {i["name"]: self.value(i["arg"]) for i in held["inputs"] if i["kind"] == 2}
        outputs = held["outputs"]
        name = held.get("name") or (self._names(outputs[0])[0] if outputs else None)
        node = self.graph.call_function(_function(held["target"]), args, kwargs, name=name)
        metadata = held.get("metadata", {})
        node.stack_trace = metadata.get("stack_trace", "")
        stack = [entry.split(",") for entry in metadata.get("nn_module_stack", "").split(";")
                 if entry.count(",") >= 2]
        node.meta["nn_module_stack"] = {path: (path, kind) for _, path, kind, *_ in stack}
        self.nodes[node.name] = node
        if len(outputs) == 1 and "as_tensors" not in outputs[0]:
            self.nodes[self._names(outputs[0])[0]] = node
            self._describe(node)
            return
        parts = [n for output in outputs for n in self._names(output)]
        for i, part in enumerate(parts):
            self.nodes[part] = self.graph.call_function(operator.getitem, (node, i), name=part)
            self.nodes[part].stack_trace = node.stack_trace
            self._describe(self.nodes[part])

    @staticmethod
    def _names(output: dict[str, Any]) -> list[str]:
        (kind, value), = output.items()
        if kind == "as_tensors":
            return [v["name"] for v in value]
        return [value.get("name") or value.get("as_name")]

    def _output_specs(self) -> list[gs.OutputSpec]:
        kinds = {"buffer_mutation": ("BUFFER_MUTATION", "buffer_name"),
                 "parameter_mutation": ("PARAMETER_MUTATION", "parameter_name"),
                 "user_input_mutation": ("USER_INPUT_MUTATION", "user_input_name")}
        specs = []
        for held in self.document["graph_module"]["signature"]["output_specs"]:
            (kind, spec), = held.items()
            if kind in kinds:
                name, key = kinds[kind]
                specs.append(gs.OutputSpec(gs.OutputKind[name], gs.TensorArgument(
                    spec["arg"]["name"]), spec[key]))
                continue
            if kind != "user_output":
                raise NotImplementedError(f"export.load: an output of kind {kind}")
            value = self.value(spec["arg"])
            if not isinstance(value, fx.Node):
                arg: Any = gs.ConstantArgument("", value)
            else:
                kind_of = gs.SymIntArgument if "as_sym_int" in spec["arg"] else gs.TensorArgument
                arg = kind_of(value.name)
            specs.append(gs.OutputSpec(gs.OutputKind.USER_OUTPUT, arg, None))
        return specs

    def program(self, state: dict[str, Any], constants: dict[str, Any], example: Any
                ) -> ExportedProgram:
        """The program, with its tensors."""
        inputs = self._placeholders()
        for held in self.held["nodes"]:
            self._step(held)
        self.graph.output(tuple([self.value(v) for v in self.held["outputs"]]))
        calls = []
        for entry in self.document["graph_module"]["module_call_graph"]:
            signature = entry["signature"]
            calls.append(ModuleCallEntry(entry["fqn"], signature and ModuleCallSignature(
                [], [], _pytree.treespec_loads(signature["in_spec"]),
                _pytree.treespec_loads(signature["out_spec"]), signature["forward_arg_names"])))
        ranges = {Symbol(name, self.hints.get(name, 0)): ValueRange(
            r["min_val"] or 0, int_oo if r["max_val"] is None else r["max_val"])
            for name, r in self.document["range_constraints"].items()}
        made = ExportedProgram(
            nn.Module(), self.graph, gs.ExportGraphSignature(inputs, self._output_specs()), state,
            ranges, calls, example, constants)
        made._dialect = (self.document.get("verifiers") or ["TRAINING"])[0]
        return made


def _function(target: str) -> Any:
    if target in _SCALARS:
        return _SCALARS[target]
    parts = target.split(".")
    if parts[:3] == ["torch", "ops", "aten"] and len(parts) == 5:
        found = _overloads.target(parts[3], parts[4])
        if found is not None:
            return found
    elif parts[:2] == ["torch", "ops"] and len(parts) == 5:
        return getattr(getattr(getattr(flambeau.ops, parts[2]), parts[3]), parts[4])
    raise NotImplementedError(f"export.load: the op {target}")


def _loaded(archive: zipfile.ZipFile, root: str, folder: str, config: str) -> dict[str, Any]:
    path = f"{root}data/{folder}/{config}"
    if path not in archive.namelist():
        return {}
    found: dict[str, Any] = {}
    for name, held in json.loads(archive.read(path))["config"].items():
        data = archive.read(f"{root}data/{folder}/{held['path_name']}")
        meta = held["tensor_meta"]
        if held["use_pickle"] or meta is None:
            found[name] = flambeau.load(io.BytesIO(data), weights_only=True)
            continue
        numbers = np.frombuffer(data, np.uint8).copy()
        dtype = _DTYPE_OF[meta["dtype"]]
        flat = flambeau.from_numpy(numbers).view(dtype) if len(numbers) else \
            flambeau.empty(0, dtype=dtype)
        tensor = flat.as_strided([s["as_int"] for s in meta["sizes"]],
                                 [s["as_int"] for s in meta["strides"]],
                                 meta["storage_offset"]["as_int"]).clone()
        found[name] = nn.Parameter(tensor, requires_grad=meta["requires_grad"]) \
            if held["is_param"] else tensor
    return found


def read(f: Any, extra_files: dict[str, Any] | None) -> ExportedProgram:
    """Read a program."""
    with zipfile.ZipFile(f) as archive:
        names = archive.namelist()
        model = next((n for n in names if n.endswith("models/model.json")), None)
        if model is None:
            raise RuntimeError("export.load: the archive holds no exported program")
        root = model.removesuffix("models/model.json")
        for key in extra_files or ():
            extra_files[key] = archive.read(f"{root}extra/{key}").decode()
        state = _loaded(archive, root, "weights", "model_weights_config.json")
        constants = _loaded(archive, root, "constants", "model_constants_config.json")
        example = None
        if f"{root}data/sample_inputs/model.pt" in names:
            held = io.BytesIO(archive.read(f"{root}data/sample_inputs/model.pt"))
            example = flambeau.load(held, weights_only=True)
        return _Reader(json.loads(archive.read(model))).program(state, constants, example)

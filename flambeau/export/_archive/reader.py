"""Reads exported programs."""
from __future__ import annotations

import ast
import io
import json
import operator
import zipfile
from typing import Any

import numpy as np

import flambeau
from flambeau import fx, nn
from flambeau._serialization.zip_reader import opened
from flambeau.export import graph_signature as gs
from flambeau.export._archive.notation import DTYPE_OF, FORMATS, function_of, parse_expression
from flambeau.export._trace.sizes import Symbol, ValueRange
from flambeau.export.dynamic_shapes import int_oo
from flambeau.export.exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature
from flambeau.utils import _pytree


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
        return value["as_int"] if "as_int" in value else parse_expression(
            value["as_expr"]["expr_str"], self.hints)

    def _describe(self, node: fx.Node) -> None:
        held = self.held["tensor_values"].get(node.name)
        if held is not None:
            sizes = tuple([self._size(s) for s in held["sizes"]])
            shape = [s if isinstance(s, int) else s.hint for s in sizes]
            node.meta["val"] = flambeau.empty(
                shape, dtype=DTYPE_OF[held["dtype"]], device="meta",
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
            return DTYPE_OF[value]
        if kind == "as_device":
            return flambeau.device(value["type"])
        if kind == "as_memory_format":
            return FORMATS[value - 1]
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
        node = self.graph.call_function(function_of(held["target"]), args, kwargs, name=name)
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
        dtype = DTYPE_OF[meta["dtype"]]
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
    with opened(f) as archive:
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

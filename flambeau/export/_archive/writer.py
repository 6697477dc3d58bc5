"""Writes exported programs."""
from __future__ import annotations

import io
import json
import operator
import os
import zipfile
from pathlib import Path
from typing import Any

import flambeau
from flambeau import Tensor, fx, nn
from flambeau.export import graph_signature as gs
from flambeau.export._archive.notation import argument_json, size_json, tensor_json
from flambeau.export._trace.sizes import Expression, Symbol
from flambeau.export.dynamic_shapes import int_oo
from flambeau.export.exported_program import ExportedProgram
from flambeau.utils import _pytree


class _Writer:
    """The parts of a program as what JSON can hold."""

    def __init__(self, program: ExportedProgram):
        self.program = program
        self.tensors: dict[str, Any] = {}
        self.numbers: dict[str, Any] = {}

    def _note(self, node: fx.Node) -> None:
        value = node.meta.get("val")
        if isinstance(value, Tensor):
            self.tensors[node.name] = tensor_json(value, node.meta.get("sizes"))
        elif isinstance(value, (Symbol, Expression)):
            self.numbers[node.name] = size_json(value)

    def _outputs(self, node: fx.Node) -> list[Any]:
        self._note(node)
        if "val" in node.meta:
            return [argument_json(node)]
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
        inputs = [{"name": n, "arg": argument_json(value), "kind": 1}
                  for n, value in zip(names, node.args)]
        inputs += [{"name": n, "arg": argument_json(value), "kind": 2}
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
                inputs.append(argument_json(arg.value if isinstance(arg, gs.ConstantArgument)
                                        else node))
            elif node.op == "output":
                outputs = [argument_json(value) for value in node.args[0]]
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
            value = argument_json(spec.arg.value)
            return {"constant_input": {"name": spec.arg.name, "value": value}}
        return {"user_input": {"arg": {"as_tensor": name}}}

    @staticmethod
    def _output_spec(spec: Any, value: Any) -> dict[str, Any]:
        if spec.kind is gs.OutputKind.USER_OUTPUT:
            return {"user_output": {"arg": argument_json(value)}}
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
        plain = value.detach().clone()              # without gaps, in the order of its strides
        flat = plain.as_strided((plain.numel(),), (1,))
        files[path] = flat.view(flambeau.uint8).numpy().tobytes()
        meta = tensor_json(plain) | {"requires_grad": value.requires_grad}
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

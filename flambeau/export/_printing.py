"""An exported graph as Python code with types, and where each step came from."""
from __future__ import annotations

import re
import textwrap
from typing import Any

from flambeau import Tensor
from flambeau.export._trace.sizes import Expression, Symbol

_SHORT = {"torch.float32": "f32", "torch.float64": "f64", "torch.float16": "f16",
          "torch.bfloat16": "bf16", "torch.int64": "i64", "torch.int32": "i32",
          "torch.int16": "i16", "torch.int8": "i8", "torch.uint8": "u8", "torch.bool": "b8",
          "torch.complex64": "c64", "torch.complex128": "c128", "torch.uint16": "u16",
          "torch.uint32": "u32", "torch.uint64": "u64", "torch.float8_e4m3fn": "f8e4m3fn",
          "torch.float8_e5m2": "f8e5m2"}


def annotation(node: Any) -> str:
    """What a node's value is: `"f32[2, s77]"`, `"Sym(2*s77)"`, nothing."""
    value = node.meta.get("val")
    if isinstance(value, Tensor):
        sizes = node.meta.get("sizes", tuple(value.shape))
        return f': "{_SHORT.get(str(value.dtype), str(value.dtype))}[{", ".join(map(str, sizes))}]"'
    return f': "Sym({value})"' if isinstance(value, (Expression, Symbol)) else ""


def _comment(trace: str) -> str | None:
    """The innermost line of a stack trace."""
    found = re.findall(r'File "(.*)", line (\d+), in (.*)\n\s*(.*)', trace)
    if not found:
        return None
    file, line, name, code = found[-1]
    return f"# File: {file}:{line} in {name}, code: {code}"


def readable(graph_module: Any, class_name: str = "GraphModule") -> str:
    """The module's class, as code."""
    graph = graph_module.graph
    lines = graph_module.code.strip("\n").split("\n")
    nodes = {node.name: node for node in graph.nodes}
    head = re.sub(r"(\w+)(?=[,)])", lambda m: m[1] + annotation(nodes[m[1]])
                  if m[1] in nodes and nodes[m[1]].op == "placeholder" else m[1], lines[0])
    body: list[str] = []
    last = None
    for line in lines[1:]:
        match = re.match(r"    (\w+) = ", line)
        node = nodes.get(match[1]) if match else None
        if node is not None and node.op == "placeholder":
            node = None
        if node is not None:
            comment = _comment(node.stack_trace or "") or \
                "# No stacktrace found for following nodes"
            if comment != last:
                body += ([""] if body else []) + [f"    {comment}"]
                last = comment
            line = f"    {node.name}{annotation(node)}{line[4 + len(node.name):]}"
        if line.strip() or body:
            body.append(line)
    while body and not body[-1].strip():
        body.pop()
    text = textwrap.indent("\n".join([head, *body]), "    ", lambda line: bool(line.strip()))
    return f"class {class_name}(torch.nn.Module):\n{text}\n"

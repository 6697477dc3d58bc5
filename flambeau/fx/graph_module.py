"""`GraphModule`: a module whose `forward` is a graph."""
from __future__ import annotations

import copy
import itertools
import linecache
import os
from pathlib import Path
from typing import Any

import flambeau
from flambeau import nn
from flambeau.fx._code import RESERVED, PythonCode
from flambeau.fx.graph import Graph

_numbers = itertools.count()
_HINT = "# To see more debug info, please use `graph_module.print_readable()`"


def _compile(code: PythonCode) -> Any:
    """The function that code defines; tracebacks show its lines."""
    name = f"<eval_with_key>.{next(_numbers)}"
    linecache.cache[name] = len(code.src), None, code.src.splitlines(keepends=True), name
    space = dict(code.globals)
    exec(compile(code.src, name, "exec"), space)
    return space["forward"]


def _assign(to: nn.Module, target: str, value: Any) -> None:
    """Set a dotted attribute; modules on the way are made."""
    *path, last = target.split(".")
    for part in path:
        if not hasattr(to, part):
            to.add_module(part, nn.Module())
        to = getattr(to, part)
    if isinstance(value, flambeau.Tensor) and not isinstance(value, nn.Parameter):
        to.register_buffer(last, value)
    else:
        setattr(to, last, value)


def _lookup(root: Any, target: str) -> Any:
    for part in target.split("."):
        root = getattr(root, part)
    return root


class GraphModule(nn.Module):
    """A module whose `forward` is a graph. It has those attributes of `root`, a module or a dict,
    that the graph names; `code` is the graph as Python. Call `recompile` after changes.

    >>> graph = Graph()
    >>> x = graph.placeholder("x")
    >>> _ = graph.output(graph.call_method("neg", (x,)))
    >>> GraphModule(nn.Module(), graph)(flambeau.ones(2))
    tensor([-1., -1.])
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> GraphModule:
        # `forward` is an attribute of the class, so each instance needs one of its own
        base = next(c for c in cls.__mro__ if "GraphModuleImpl" not in c.__qualname__)
        own = type(base.__name__, (base,), {"__qualname__": f"{base.__qualname__}.GraphModuleImpl",
                                            "__module__": base.__module__})
        return super().__new__(own)

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule"):
        super().__init__()
        self.__class__.__name__ = class_name
        if not isinstance(root, (nn.Module, dict)):
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        if hasattr(root, "training"):
            self.training = root.training
        for node in graph.nodes:
            if node.op not in ("get_attr", "call_module"):
                continue
            if isinstance(root, dict):
                if node.target not in root:
                    raise RuntimeError(f"Node {node} referenced target {node.target} but that "
                                       "target was not provided in ``root``!")
                _assign(self, node.target, root[node.target])
            else:
                _assign(self, node.target, _lookup(root, node.target))
        self.graph = graph

    @property
    def graph(self) -> Graph:
        """The graph; setting it compiles it."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        assert isinstance(g, Graph), f"Expected a Graph instance, but got {type(g)}"
        self._graph = g
        g.owning_module = self
        self.recompile()

    def recompile(self) -> PythonCode:
        """Make `forward` and `code` from the graph as it is now."""
        code = self._graph.python_code("self")
        self._code = code.src
        self.__class__.forward = _compile(code)
        return code

    @property
    def code(self) -> str:
        """The graph as Python code."""
        return self._code

    def add_submodule(self, target: str, m: nn.Module) -> bool:
        """Add a module under a dotted name; False if something else is in the way."""
        *path, last = target.split(".")
        found: Any = self
        for part in path:
            if not hasattr(found, part):
                setattr(found, part, nn.Module())
            found = getattr(found, part)
            if not isinstance(found, nn.Module):
                return False
        found.add_module(last, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Delete the module of a dotted name; was there one?"""
        *path, last = target.split(".")
        found: Any = self
        for part in path:
            found = getattr(found, part, None)
        if not isinstance(getattr(found, last, None), nn.Module):
            return False
        delattr(found, last)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Delete the modules that the graph does not name."""
        used: set[str] = set()
        for node in self._graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = node.target.split(".")
                used |= {".".join(parts[:i]) for i in range(1, len(parts) + 1)}
                if node.op == "call_module":
                    inner = _lookup(self, node.target)
                    used |= {f"{node.target}.{name}" for name, _ in inner.named_modules() if name}
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    def print_readable(self, print_output: bool = True, **options: Any) -> str:
        """The code as a class; printed, unless told otherwise."""
        body = "\n".join("    " + line if line.strip() else "" for line in self._code.split("\n"))
        text = f"class {type(self).__name__}(torch.nn.Module):\n" + body.lstrip("\n")
        if print_output:
            print(text)
        return text

    def to_folder(self, folder: str | os.PathLike[str], module_name: str = "FxModule") -> None:
        """Write a package with the module's code and state: `from folder import module_name`."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        flambeau.save(self.state_dict(), folder / "state_dict.pt")
        lines = ["import flambeau as torch", "from pathlib import Path",
                 "from math import inf, nan", "NoneType = type(None)", "device = torch.device",
                 *_imports(self._graph.python_code("self").globals), "", "",
                 f"class {module_name}(torch.nn.Module):", "    def __init__(self):",
                 "        super().__init__()", "        folder = Path(__file__).parent"]
        for name, module in self.named_children():
            flambeau.save(module, folder / f"{name}.pt")
            lines.append(f"        self.add_module({name!r}, torch.load(folder / '{name}.pt', "
                         "weights_only=False))")
        for name, buffer in self._buffers.items():
            if buffer is not None:
                lines.append(f"        self.register_buffer({name!r}, torch.empty("
                             f"{list(buffer.shape)}, dtype={buffer.dtype}))")
        for name, parameter in self._parameters.items():
            if parameter is not None:
                lines.append(f"        self.{name} = torch.nn.Parameter(torch.empty("
                             f"{list(parameter.shape)}, dtype={parameter.dtype}))")
        lines.append("        self.load_state_dict(torch.load(folder / 'state_dict.pt'))")
        code = "\n".join("    " + line if line.strip() else "" for line in self._code.split("\n"))
        (folder / "module.py").write_text("\n".join(lines) + "\n" + code.rstrip() + "\n")
        (folder / "__init__.py").write_text(f"from .module import {module_name}\n")

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        state = {k: v for k, v in self.__dict__.items() if k not in ("_graph", "_code")}
        holder = nn.Module()
        holder.__dict__.update(copy.deepcopy(state, memo))
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        nn.Module.__init__(made)
        made.__dict__.update(holder.__dict__)
        made.__class__.__name__ = type(self).__name__
        made.graph = copy.deepcopy(self._graph)
        return made

    def __copy__(self) -> GraphModule:
        return GraphModule(self, self.graph, type(self).__name__)

    def __reduce__(self) -> Any:
        state = {k: v for k, v in self.__dict__.items() if k not in ("_graph", "_code")}
        names = {k: v for k, v in self._graph.python_code("self").globals.items()
                 if k not in RESERVED}
        return _rebuild, (state, self._code, names, type(self).__name__)

    def __str__(self) -> str:
        return "\n".join([super().__repr__(), self._code, _HINT])


def _imports(names: dict[str, Any]) -> list[str]:
    """Statements that give code the objects it names."""
    return [f"from {value.__module__} import {value.__name__} as {name}"
            for name, value in names.items()
            if name not in RESERVED and getattr(value, "__module__", "builtins") != "builtins"]


def _rebuild(state: dict[str, Any], code: str, names: dict[str, Any], class_name: str) -> Any:
    """Trace the code of a module that was pickled; its submodules stay what they are."""
    from flambeau.fx._symbolic_trace import Tracer

    class KeepModules(Tracer):
        def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
            return True

    source = "\n".join(line for line in code.split("\n") if not line.startswith("torch.fx."))
    holder = type(class_name, (nn.Module,), {
        "forward": _compile(PythonCode(source, {**RESERVED, **names}))})()
    holder.__dict__.update(state)
    return GraphModule(holder, KeepModules().trace(holder), class_name)

"""`GraphModule`: a module whose `forward` is a graph."""
from __future__ import annotations

import contextlib
import copy
import itertools
import linecache
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import flambeau
from flambeau import nn
from flambeau.fx._codegen import PythonCode, _custom_builtins, reserved_names
from flambeau.fx.graph import Graph

_numbers = itertools.count()
_HINT = "# To see more debug info, please use `graph_module.print_readable()`"
_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
FX_GRAPH_MODULE_FILE_PREFIX = "fx_generated_"
_HOOKS = ("_replace_hooks", "_create_node_hooks", "_erase_node_hooks", "_deepcopy_hooks")


def _exec_with_source(src: str, globals: dict[str, Any], co_fields: Any = None) -> None:
    """Run code whose lines tracebacks show; `co_fields` says where it was traced."""
    name = f"<eval_with_key>.{next(_numbers)}"
    if co_fields:
        name += (f" from {co_fields['co_filename']}:{co_fields['co_firstlineno']} in "
                 f"{co_fields['co_name']}")
    linecache.cache[name] = len(src), None, src.splitlines(keepends=True), name
    exec(compile(src, name, "exec"), globals)


def _method_from_src(method_name: str, src: str, globals: dict[str, Any], co_fields: Any = None
                     ) -> Callable[..., Any]:
    """The function of that name that code defines."""
    space = dict(globals)
    _exec_with_source(src, space, co_fields)
    return space[method_name]


def _forward_from_src(src: str, globals: dict[str, Any], co_fields: Any = None
                      ) -> Callable[..., Any]:
    return _method_from_src("forward", src, globals, co_fields)


# ---- attributes by dotted names ------------------------------------------------------------------


def _get_attr(model: Any, attr_name: str) -> Any:
    """The attribute of a dotted name."""
    return _get_attr_via_attr_list(model, attr_name.split("."))


def _get_attr_via_attr_list(model: Any, attr_list: list[str]) -> Any:
    for part in attr_list:
        model = getattr(model, part)
    return model


def _has_attr(model: Any, attr_name: str) -> bool:
    """Is there an attribute of that dotted name?"""
    *path, last = attr_name.split(".")
    for part in path:
        if not hasattr(model, part):
            return False
        model = getattr(model, part)
    return hasattr(model, last)


def _del_attr(model: Any, attr_name: str) -> None:
    """Delete the attribute of a dotted name."""
    *path, last = attr_name.split(".")
    delattr(_get_attr_via_attr_list(model, path), last)


def _assign_attr(from_obj: Any, to_module: nn.Module, target: str) -> None:
    """Set a dotted attribute; modules on the way are made, tensors become buffers."""
    *path, last = target.split(".")
    for part in path:
        if not hasattr(to_module, part):
            to_module.add_module(part, nn.Module())
        to_module = getattr(to_module, part)
    if isinstance(from_obj, flambeau.Tensor) and not isinstance(from_obj, nn.Parameter):
        to_module.register_buffer(last, from_obj)
    else:
        setattr(to_module, last, from_obj)


def _copy_attr(from_module: nn.Module, to_module: nn.Module, target: str) -> None:
    """Give a module the attribute that another has under a dotted name."""
    *path, last = target.split(".")
    for part in path:
        inner, there = getattr(from_module, part), getattr(to_module, part, None)
        if inner is there:
            return                          # the whole module is shared already
        if there is None:
            there = nn.Module()
            setattr(to_module, part, there)
        from_module, to_module = inner, there
    value = getattr(from_module, last)
    if isinstance(value, flambeau.Tensor) and not isinstance(value, nn.Parameter):
        to_module.register_buffer(last, value)
    else:
        setattr(to_module, last, value)


class _WrappedCall:
    """Calls a graph module; what goes wrong in its code is told with the line."""

    def __init__(self, cls: Any, cls_call: Callable[..., Any] | None):
        self.cls, self.cls_call = cls, cls_call

    def __call__(self, obj: Any, *args: Any, **kwargs: Any) -> Any:
        if self.cls_call is not None:
            return self.cls_call(obj, *args, **kwargs)
        parent: Any = super(self.cls, obj)
        return parent.__call__(*args, **kwargs)


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
        own = type(base.__name__, (base,), {
            "__qualname__": "GraphModule.__new__.<locals>.GraphModuleImpl",
            "__module__": GraphModule.__module__})
        return super().__new__(own)

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule"):
        super().__init__()
        self.__class__.__name__ = class_name
        self.meta: dict[str, Any] = {}
        for name in _HOOKS:
            setattr(self, name, [])
        if not isinstance(root, (nn.Module, dict)):
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        if isinstance(root, GraphModule):
            self.meta.update({k: v for k, v in root.meta.items()
                              if k == _USER_PRESERVED_ATTRIBUTES_KEY})
            for name, value in root.meta.get(_USER_PRESERVED_ATTRIBUTES_KEY, {}).items():
                setattr(self, name, value)
        if hasattr(root, "training"):
            self.training = root.training
        users = [node for node in graph.nodes if node.op in ("get_attr", "call_module")]
        if isinstance(root, dict):          # a module comes before what is in it
            users.sort(key=lambda node: node.target.count("."))
        for node in users:
            if not isinstance(root, dict):
                _copy_attr(root, self, node.target)
            elif node.target in root:
                _assign_attr(root[node.target], self, node.target)
            else:
                raise RuntimeError(f"Node {node} referenced target {node.target} but that target "
                                   "was not provided in ``root``!")
        self._tracer_cls = graph._tracer_cls
        self._tracer_extras = graph._tracer_extras or {}
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
        codegen = self._graph._codegen
        info = getattr(codegen, "pytree_info", None)
        if info is not None:
            self._in_spec, self._out_spec = info.in_spec, info.out_spec
        code = self._graph.python_code("self")
        self._code, self._lineno_map = code.src, code._lineno_map
        self._prologue_start = code._prologue_start
        self.__class__.forward = _method_from_src(codegen._func_name, code.src, code.globals,
                                                  self._graph._co_fields)
        return code

    @property
    def code(self) -> str:
        """The graph as Python code."""
        if not hasattr(self, "_code"):
            raise RuntimeError("Code has not been generated yet. Please report a bug to PyTorch")
        return self._code

    # ---- hooks on changes of the graph ----------------------------------------------------------

    def _register_replace_node_hook(self, f: Callable[..., None]) -> None:
        """Call `f(old=, new=, user=)` when a node is to use another."""
        self._replace_hooks.append(_checked(f))

    def _unregister_replace_node_hook(self, f: Callable[..., None]) -> None:
        self._replace_hooks.remove(f)

    def _register_create_node_hook(self, f: Callable[..., None]) -> None:
        """Call `f(node)` when a node is made."""
        self._create_node_hooks.append(_checked(f))

    def _unregister_create_node_hook(self, f: Callable[..., None]) -> None:
        self._create_node_hooks.remove(f)

    def _register_erase_node_hook(self, f: Callable[..., None]) -> None:
        """Call `f(node)` when a node is taken out."""
        self._erase_node_hooks.append(_checked(f))

    def _unregister_erase_node_hook(self, f: Callable[..., None]) -> None:
        self._erase_node_hooks.remove(f)

    def _register_deepcopy_hook(self, f: Callable[..., None]) -> None:
        """Call `f(copy)` when the module has been copied."""
        self._deepcopy_hooks.append(_checked(f))

    def _unregister_deepcopy_hook(self, f: Callable[..., None]) -> None:
        self._deepcopy_hooks.remove(f)

    @contextlib.contextmanager
    def _set_replace_hook(self, f: Callable[..., None]) -> Iterator[None]:
        self._register_replace_node_hook(f)
        try:
            yield
        finally:
            self._unregister_replace_node_hook(f)

    @property
    def shape_env(self) -> Any:
        """The environment of the symbolic sizes among the values, if there are any."""
        for node in self.graph.nodes:
            mode = getattr(node.meta.get("val"), "fake_mode", None)
            if mode is not None:
                return mode.shape_env
        return None

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
                    inner = _get_attr(self, node.target)
                    used |= {f"{node.target}.{name}" for name, _ in inner.named_modules() if name}
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    def print_readable(self, print_output: bool = True, include_stride: bool = False,
                       include_device: bool = False, colored: bool = False, *,
                       fast_sympy_print: bool = False, expanded_def: bool = False,
                       additional_meta: list[str] | None = None) -> str:
        """The code as a class, and what is known of its values; printed, unless told otherwise."""
        return _print_readable(self, self._get_name(), print_output, include_stride,
                               include_device, colored, expanded_def, additional_meta)

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
        state = {k: v for k, v in self.__dict__.items() if k not in ("_graph", "_code", *_HOOKS)}
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        nn.Module.__init__(made)
        made.__dict__.update(copy.deepcopy(state, memo))
        for name in _HOOKS:
            setattr(made, name, list(getattr(self, name, ())))
        if isinstance(made, GraphModule) and type(self).__mro__[1] is GraphModule:
            made.__class__.__name__ = "GraphModule"
        made.graph = copy.deepcopy(self._graph)
        for hook in made._deepcopy_hooks:
            hook(made)
        return made

    def _deepcopy_init(self) -> Any:
        return GraphModule.__init__

    def __copy__(self) -> GraphModule:
        made = GraphModule(self, self.graph)
        made.meta = getattr(self, "meta", {})
        return made

    def _replicate_for_data_parallel(self) -> GraphModule:
        made = self.__copy__()
        made._is_replica = True
        return made

    def __reduce__(self) -> Any:
        state = {k: v for k, v in self.__dict__.items() if k not in ("_graph", *_HOOKS)}
        names = {k: v for k, v in self._graph.python_code("self").globals.items()
                 if k not in reserved_names()}
        state["_codegen"] = self._graph._codegen
        return _rebuild, (state, names, "GraphModule")

    def __str__(self) -> str:
        return "\n".join([super().__repr__(), self._code, _HINT])


def _checked(f: Any) -> Any:
    if not callable(f):
        raise AssertionError("a hook must be a callable")
    return f


def _print_readable(module: Any, module_name: str, print_output: bool = True,
                    include_stride: bool = False, include_device: bool = False,
                    colored: bool = False, expanded_def: bool = False,
                    additional_meta: list[str] | None = None) -> str:
    """The code of a graph module and of those in it, as classes."""
    graph = module.graph
    code = graph.python_code("self", verbose=True, include_stride=include_stride,
                             include_device=include_device, colored=colored,
                             expanded_def=expanded_def, additional_meta=additional_meta).src
    text = f"class {module_name or 'GraphModule'}(torch.nn.Module):\n" \
        + _indented(code.lstrip("\n")).rstrip() + "\n"
    for name, child in module.named_children():
        if hasattr(child, "graph"):
            inner = _print_readable(child, name, False, include_stride, include_device, colored)
            text += "\n" + _indented(inner).rstrip() + "\n"
    if print_output:
        print(text)
    return text


def _indented(text: str) -> str:
    return "".join("    " + line if line.strip() else "\n"
                   for line in text.splitlines(keepends=True))


def _imports(names: dict[str, Any]) -> list[str]:
    """Statements that give code the objects it names."""
    return [f"from {value.__module__} import {value.__name__} as {name}"
            for name, value in names.items()
            if name not in _custom_builtins
            and getattr(value, "__module__", "builtins") != "builtins"]


# ---- from code -----------------------------------------------------------------------------------


class _CodeOnlyModule(nn.Module):
    """The attributes of a graph module; its `forward` is set from outside."""

    def __init__(self, body: dict[str, Any]):
        super().__init__()
        self.__dict__ = body


def _rebuild(state: dict[str, Any], names: dict[str, Any], class_name: str) -> Any:
    """A module that was pickled."""
    codegen = state.pop("_codegen")
    made = _deserialize_graph_module(
        _forward_from_src(_without_wraps(state["_code"]), {**reserved_names(), **names}), state)
    made.__class__.__name__ = class_name
    made.graph._codegen = codegen
    made.recompile()
    return made


def _without_wraps(code: str) -> str:
    return "\n".join(line for line in code.split("\n") if not line.startswith("torch.fx."))


def _deserialize_graph_module(forward: Callable[..., Any], body: dict[str, Any],
                              graph_module_cls: Any = None) -> nn.Module:
    """The graph module with these attributes that `forward` computes: its code is traced again, the
    submodules stay what they are."""
    from flambeau.fx._symbolic_trace import Tracer
    tracer_class: Any = body.get("_tracer_cls") or Tracer

    class KeepModules(tracer_class):
        def is_leaf_module(self, _: nn.Module, __: str) -> bool:
            return True

    class Holder(_CodeOnlyModule):
        pass
    Holder.forward = forward
    holder = Holder({k: v for k, v in body.items() if k not in ("_in_spec", "_out_spec")}
                    if "_in_spec" not in body else dict(body))
    flat = _flat_forward(forward, body)
    if flat is not None:
        Holder.forward = flat
    graph = KeepModules().trace(holder)
    graph._tracer_cls = body.get("_tracer_cls")
    name = body.get("_graphmodule_cls_name", "GraphModule")
    made = (graph_module_cls or GraphModule)(holder, graph, class_name=name)
    for key, value in body.items():
        if key not in made.__dict__ and key not in ("_code", "_lineno_map"):
            made.__dict__[key] = value
    return made


def _flat_forward(forward: Callable[..., Any], body: dict[str, Any]) -> Any:
    """Of code that takes containers apart: the function of their leaves."""
    if "_in_spec" not in body or "tree_flatten_spec" not in body.get("_code", ""):
        return None
    import re
    code = body["_code"]
    found = re.search(r"^    (.*), = fx_pytree\.tree_flatten_spec\(.*\)$", code, re.MULTILINE)
    if found is None:
        return None
    lines = code[found.end():]
    lines = re.sub(r"return pytree\.tree_unflatten\((.*), self\._out_spec\)", r"return \1", lines)
    return _forward_from_src(f"def forward(self, {found[1]}):{lines}", forward.__globals__)


def reduce_graph_module(body: dict[Any, Any], import_block: str) -> nn.Module:
    """A graph module from its attributes, its code among them, and the imports that code needs."""
    code = body.get("_code") or body.get("code")
    space: dict[str, Any] = dict(reserved_names())
    exec(import_block, space)
    return _deserialize_graph_module(_forward_from_src(_without_wraps(code), space), body)


def reduce_package_graph_module(importer: Any, body: dict[Any, Any], generated_module_name: str
                                ) -> nn.Module:
    """A graph module of a package, whose code is one of its modules."""
    forward = importer.import_module(generated_module_name).forward
    return _deserialize_graph_module(forward, body)


__all__ = ["GraphModule", "reduce_graph_module", "reduce_package_graph_module"]

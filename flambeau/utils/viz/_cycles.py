"""Reference cycles: what the garbage collector finds, and the objects of which it is made.

>>> garbage = []
>>> stop = observe_garbage(lambda found: garbage.extend(map(type, found)))
>>> cycle = [flambeau.ones(2)]
>>> cycle.append(cycle)
>>> del cycle
>>> _ = gc.collect()
>>> stop()
>>> flambeau.Tensor in garbage
True
"""
from __future__ import annotations

import gc
import html
import json
import logging
import os
import tempfile
import types
import weakref
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from flambeau.core.tensor import Tensor

logger = logging.getLogger(__name__)

BASE_TYPES = (int, float, complex, type(None), str, bytes, bool, range, slice)
FRAME_FILENAME_LIMIT = 32


def observe_garbage(observer: Callable[[list[Any]], None]) -> Callable[[], None]:
    """Call `observer` with the objects that each collection frees; gives what ends that."""
    enabled = True

    def on_collection(phase: str, info: dict[str, int]) -> None:
        nonlocal enabled
        if not enabled:
            return
        if phase == "start":
            gc.set_debug(gc.get_debug() | gc.DEBUG_SAVEALL)
            return
        gc.set_debug(gc.get_debug() & ~gc.DEBUG_SAVEALL)
        found, gc.garbage[:] = list(gc.garbage), []
        if found:
            enabled = False             # what the observer makes is no garbage of the program
            try:
                observer(found)
            finally:
                enabled = True

    gc.callbacks.append(on_collection)

    def stop() -> None:
        nonlocal enabled
        enabled = False
        if on_collection in gc.callbacks:
            gc.callbacks.remove(on_collection)
    return stop


# ---- objects and what they refer to --------------------------------------------------------------


def annotated_references(obj: Any) -> dict[int, list[str]]:
    """The ids of the objects to which one refers, and how: `.x`, `[0]`, `__class__`, …"""
    found: dict[int, list[str]] = {}

    def add(name: str, referent: Any) -> None:
        found.setdefault(id(referent), []).append(name)

    if isinstance(obj, dict):
        for key, value in obj.items():
            add("key", key)
            add(f"[{key!r}]", value)
    elif isinstance(obj, (list, tuple)):
        for place, value in enumerate(obj):
            add(f"[{place}]", value)
    elif isinstance(obj, types.CellType):
        try:
            add("cell_contents", obj.cell_contents)
        except ValueError:              # not filled yet
            pass
    elif isinstance(obj, types.MethodType):
        add("__self__", obj.__self__)
        add("__func__", obj.__func__)
    elif isinstance(obj, types.FunctionType):
        for name in ("__globals__", "__code__", "__closure__", "__defaults__", "__kwdefaults__"):
            add(name, getattr(obj, name))
    elif isinstance(obj, types.FrameType):
        for name, value in obj.f_locals.items():
            add(f"local {name}", value)
        add("f_back", obj.f_back)
    elif isinstance(obj, weakref.ref):
        add("__callback__", obj.__callback__)
    elif hasattr(obj, "__dict__") and not isinstance(obj, (type, types.ModuleType)):
        add("__dict__", obj.__dict__)
    add("__class__", type(obj))
    return found


def object_annotation(obj: Any) -> str:
    """An object in a few words: its type, and where it comes from."""
    if isinstance(obj, BASE_TYPES):
        return repr(obj)
    if isinstance(obj, types.FunctionType):
        return f"function\n{obj.__name__}"
    if isinstance(obj, types.MethodType):
        return f"instancemethod\n{obj.__func__.__name__}"
    if isinstance(obj, (list, tuple)):
        return f"[{len(obj)}]" if isinstance(obj, list) else f"({len(obj)})"
    if isinstance(obj, dict):
        return f"dict[{len(obj)}]"
    if isinstance(obj, types.ModuleType):
        return f"module\n{obj.__name__}"
    if isinstance(obj, type):
        return f"type\n{obj.__name__}"
    if isinstance(obj, types.FrameType):
        name = obj.f_code.co_filename
        if len(name) > FRAME_FILENAME_LIMIT:
            name = "..." + name[-(FRAME_FILENAME_LIMIT - 3):]
        return f"frame\n{name}:{obj.f_lineno}"
    return f"object\n{type(obj).__module__}.{type(obj).__name__}"


class Node(NamedTuple):
    """An object in a picture, and the edges to those that it refers to."""

    label: str
    context: str | None
    root: bool
    referrents: list[tuple[str, int]]


def create_graph(objects: Iterable[Any], *, context: Callable[[Any], str | None] | None = None,
                 filter: Callable[[Any], bool] | None = None) -> list[Node]:
    """The objects that `filter` marks (by default tensors of CUDA), and those through which they
    are reached. `context` says more of an object."""
    context = context or cuda_allocation_context()
    filter = filter or is_cuda_tensor
    objects = list(objects)
    edges = [annotated_references(obj) for obj in objects]
    place = {id(obj): i for i, obj in enumerate(objects)}
    referrers: dict[int, list[int]] = {}
    for i, references in enumerate(edges):
        for target in references:
            referrers.setdefault(target, []).append(i)
    kept: set[int] = set()
    waiting = [i for i, obj in enumerate(objects) if filter(obj)]
    while waiting:
        i = waiting.pop()
        if i not in kept:
            kept.add(i)
            waiting += referrers.get(id(objects[i]), [])
    order = {old: new for new, old in enumerate(sorted(kept))}
    nodes = []
    for old in order:
        targets = [(name, order[place[target]]) for target, names in edges[old].items()
                   if target in place and place[target] in kept for name in names]
        obj = objects[old]
        nodes.append(Node(object_annotation(obj), context(obj), filter(obj), targets))
    return nodes


def escape(n: Any) -> str:
    """A text in quotes."""
    return json.dumps(n)


def is_cuda_tensor(obj: Any) -> bool:
    """Is this a tensor of CUDA? There are none."""
    return isinstance(obj, Tensor) and obj.is_cuda


def cuda_allocation_context() -> Callable[[Any], str | None]:
    """What says where the memory of a tensor of CUDA was taken: nothing here."""
    return lambda obj: None


def to_dot(nodes: list[Node]) -> str:
    """The picture in the language of Graphviz."""
    lines = ["digraph GraphName {", "node [shape=rect];", "rankdir=LR;"]
    for i, node in enumerate(nodes):
        lines.append(f"{i} [label={escape(node.label)}, color={'red' if node.root else 'black'}];")
        lines += [f"{i} -> {target} [label = {escape(name)}]" for name, target in node.referrents]
    return "\n".join([*lines, "}\n"])


def to_html(nodes: list[Node]) -> str:
    """A page with the picture, drawn by Graphviz in the browser, and what is known of each object.
    """
    notes = "\n".join(f"<h4>{i}: {html.escape(node.label)}</h4><pre>{html.escape(node.context)}"
                      "</pre>" for i, node in enumerate(nodes) if node.context)
    return f"""<!DOCTYPE html>
<html>
<body>
<div id="picture"></div>
{notes}
<script type="module">
import {{ Graphviz }} from "https://cdn.jsdelivr.net/npm/@hpcc-js/wasm/dist/graphviz.js";
const graphviz = await Graphviz.load();
document.getElementById("picture").innerHTML = graphviz.layout({escape(to_dot(nodes))}, "svg", \
"dot");
</script>
</body>
</html>
"""


def observe_tensor_cycles(callback: Callable[[str], None]) -> Callable[[], None]:
    """Call `callback` with a page about each cycle that kept memory of CUDA. Needs CUDA."""
    from flambeau.cuda.memory import _record_memory_history
    _record_memory_history(max_entries=100000)

    def observer(garbage: list[Any]) -> None:
        if any(is_cuda_tensor(obj) for obj in garbage):
            callback(to_html(create_graph(garbage)))
    return observe_garbage(observer)


def warn_tensor_cycles() -> Callable[[], None]:
    """Warn of each cycle that keeps memory of CUDA, with a page that shows it. Needs CUDA."""
    logger.info("Watching Python reference cycles for CUDA Tensors.")

    def write_and_log(page: str) -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".html", delete=False) as file:
            file.write(page)
            logger.warning("Reference cycle includes a CUDA Tensor see visualization of cycle %s",
                           os.path.abspath(file.name))
    return observe_tensor_cycles(write_and_log)

"""`draw`: a picture of the graph behind a tensor.

>>> import flambeau
>>> w = flambeau.ones(3, requires_grad=True)
>>> x = flambeau.ones(3)
>>> print(draw((w * x).sum(), names={"w": w}))
sum  torch.float32 []
mul  torch.float32 [3]
w  torch.float32 [3]
"""
from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from flambeau import Tensor
from flambeau.autograd.function_context import BackwardCFunction
from flambeau.autograd.graph import get_gradient_edge
from flambeau.core.autograd.graph import AccumulateGrad, Packed
from flambeau.core.views import CopySlices

BRANCH, LAST, LINE, GAP = "├─ ", "└─ ", "│  ", "   "


def draw(tensors: Any, *, names: Any = None, saved: bool = False,
         depth: int | None = None) -> Drawing:
    """A picture of the graph that gave `tensors`, one or several.

    In a terminal, `print(draw(y))` shows a tree, in which a node of one input stands above it and
    several are indented; a notebook shows an SVG. `.svg()` and `.dot()` give those as text, and
    `.save("graph.svg")` (or `.dot`, `.txt`) writes a file.

    names   labels tensors, leaves or others: a module, or a dictionary of names and tensors
    saved   shows what nodes keep for backward, under PyTorch's names
    depth   shows only what is at most so many steps from `tensors`; … marks what is left out

    A node whose results are several tells which of them is meant: `svd[1]`. One with hooks says so.

    >>> import flambeau
    >>> layer = nn.Linear(2, 1)
    >>> print(draw(layer(flambeau.ones(3, 2)).exp(), names=layer, saved=True))
    exp  torch.float32 [3, 1]  saves result [3, 1]
    addmm  torch.float32 [3, 1]  saves mat1 [3, 2]
    ├─ bias  torch.float32 [1]
    └─ t  torch.float32 [2, 1]
       weight  torch.float32 [1, 2]
    """
    given = (tensors,) if isinstance(tensors, Tensor) else tuple(tensors)
    return Drawing([get_gradient_edge(t) for t in given], _labels(names), saved, depth)


def _labels(names: Any) -> dict[Any, str]:
    """The name of each leaf by its identity, of each other tensor by the edge to it."""
    pairs = names.named_parameters() if hasattr(names, "named_parameters") \
        else names.items() if isinstance(names, Mapping) else names or ()
    found: dict[Any, str] = {}
    for name, tensor in pairs:
        if tensor.grad_fn is None:
            found[id(tensor)] = name
        else:
            found[id(tensor.grad_fn), tensor.output_nr] = name
    return found


def _op_name(name: str) -> str:
    """`LogSoftmaxBackward0` as `log_softmax`."""
    title = re.sub(r"Backward\d*$", "", name.rpartition("::")[2])
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", title).lower()


def _kept(node: Any) -> str:
    """What a node keeps for its derivative: the names and shapes of tensors."""
    if node.saved is None:
        return "freed"
    found = []
    names = node.saved_names or [f"saved_tensors[{i}]" for i in range(len(node.saved))]
    for name, kind, entry in zip(names, node.saved_kinds, node.saved):
        if kind == "value" or entry is None:
            continue
        for one in entry if kind == "tensors" else (entry,):
            shape = "packed" if type(one) is Packed else list(one[0].shape) \
                if type(one) is tuple else one
            found.append(f"{name} {shape}")
    return f"saves {', '.join(found)}" if found else ""


class Box:
    """A node as it is drawn."""

    def __init__(self, node: Any, title: str, detail: str):
        self.node, self.title, self.detail = node, title, detail
        self.leaf, self.several = isinstance(node, AccumulateGrad), node.outputs > 1
        self.inputs: list[Arrow] = []
        self.cut = False                # are there inputs that are not drawn?
        self.row = 0
        self.x = 0.0


class Arrow(NamedTuple):
    """A box, and which of its results goes on from there."""

    box: Box
    output: int

    @property
    def title(self) -> str:
        return f"{self.box.title}[{self.output}]" if self.box.several else self.box.title


class Drawing:
    """A graph, to be shown as text, SVG or DOT."""

    def __init__(self, roots: Iterable[Any], labels: Mapping[Any, str], saved: bool,
                 depth: int | None = None):
        self._labels, self._saved, self._depth = labels, saved, depth
        self._boxes: dict[int, Box] = {}
        self._roots = [Arrow(self._box(node), output) for node, output, *_ in roots]
        self._collect()

    # ---- the graph ------------------------------------

    def _box(self, node: Any) -> Box:
        box = self._boxes.get(id(node))
        if box is None:
            box = self._boxes[id(node)] = Box(node, self._title(node), self._detail(node))
        return box

    def _collect(self) -> None:
        """Make all boxes; level by level, since graphs may be deep, and so that each is reached by
        its shortest way."""
        level, steps = [arrow.box for arrow in self._roots], 0
        seen: set[int] = set()
        while level:
            below = []
            for box in level:
                if id(box) in seen:
                    continue
                seen.add(id(box))
                edges = [e for e in box.node.next_functions if e[0] is not None]
                if self._depth is not None and steps >= self._depth:
                    box.cut = bool(edges)
                    continue
                box.inputs = [Arrow(self._box(node), output) for node, output in edges]
                below += [arrow.box for arrow in box.inputs]
            level, steps = below, steps + 1

    def _title(self, node: Any) -> str:
        if isinstance(node, AccumulateGrad):
            leaf = node.variable
            return self._labels.get(id(leaf)) or (
                "parameter" if type(leaf).__name__ == "Parameter" else "leaf")
        if isinstance(node, BackwardCFunction):
            title = node._forward_cls.__name__
        else:
            title = _op_name(type(node).__name__)
            if isinstance(node, CopySlices):
                title += f"({_op_name(node.saved[0].name())})"
        names = [self._labels[id(node), i] for i in range(node.outputs)
                 if (id(node), i) in self._labels]
        return f"{', '.join(names)}: {title}" if names else title

    def _detail(self, node: Any) -> str:
        if isinstance(node, AccumulateGrad):
            leaf, hooks = node.variable, node.variable._hooks
            detail = f"{leaf.dtype} {list(leaf.shape)}"
            marks = [m for m in (len(hooks.tensor), len(hooks.accumulated)) if m] if hooks else []
            return f"{detail}  hooks" if marks or node.hooks is not None else detail
        detail = ", ".join(f"{m.dtype} {list(m.shape)}" for m in node._input_metadata)
        if node.hooks is not None:
            detail += "  hooks"
        if self._saved:
            kept = _kept(node)
            detail += f"  {kept}" if kept else ""
        return detail

    def __len__(self) -> int:
        return len(self._boxes)

    # ---- text ------------------------------------

    def __str__(self) -> str:
        """A tree; what was shown already is marked with ↑ and not repeated."""
        lines: list[str] = []
        shown: dict[int, int] = {}
        repeated = self._repeated()
        waiting = [(arrow, "", "", "") for arrow in reversed(self._roots)]
        while waiting:
            arrow, prefix, branch, below = waiting.pop()
            box, mark = arrow.box, ""
            again = id(box) in shown
            if id(box) in repeated:
                number = shown.setdefault(id(box), len(shown) + 1)
                mark = f"  ↑{number}" if again else f"  ({number})"
            lines.append(f"{prefix}{branch}{arrow.title}{'' if again else '  ' + box.detail}{mark}")
            if again:
                continue
            if box.cut:
                lines.append(f"{prefix}{below}…")
            inputs = box.inputs
            if len(inputs) == 1:
                waiting.append((inputs[0], prefix + below, "", ""))
                continue
            for i in range(len(inputs) - 1, -1, -1):
                last = i == len(inputs) - 1
                waiting.append((inputs[i], prefix + below, LAST if last else BRANCH,
                                GAP if last else LINE))
        return "\n".join(lines)

    __repr__ = __str__

    def _repeated(self) -> set[int]:
        """Boxes that more than one path leads to."""
        counts: dict[int, int] = {}
        for arrow in self._arrows():
            counts[id(arrow.box)] = counts.get(id(arrow.box), 0) + 1
        return {key for key, n in counts.items() if n > 1}

    def _arrows(self) -> list[Arrow]:
        return [*self._roots, *(arrow for box in self._boxes.values() for arrow in box.inputs)]

    # ---- DOT ------------------------------------

    def dot(self) -> str:
        """The graph in Graphviz's language."""
        numbers = {key: i for i, key in enumerate(self._boxes)}
        lines = ["digraph {", '  node [shape=box, style="rounded,filled", fillcolor="#eef2f7", '
                 'fontname="Helvetica", fontsize=11];']
        for key, box in self._boxes.items():
            label = "\\n".join(text.replace("\\", "\\\\").replace('"', '\\"')
                                for text in (box.title, box.detail))
            color = ', fillcolor="#d6ecd2"' if box.leaf else ""
            lines.append(f'  n{numbers[key]} [label="{label}"{color}];')
        for key, box in self._boxes.items():
            for source, output in box.inputs:
                label = f' [label="{output}"]' if source.several else ""
                lines.append(f"  n{numbers[id(source.node)]} -> n{numbers[key]}{label};")
            if box.cut:
                lines += [f'  m{numbers[key]} [label="…", shape=plaintext, style=""];',
                          f"  m{numbers[key]} -> n{numbers[key]};"]
        return "\n".join([*lines, "}"]) + "\n"

    # ---- SVG ------------------------------------

    def svg(self) -> str:
        """The graph as an SVG, results at the bottom."""
        rows = self._rows()
        height, gap_x, gap_y, letter = 40, 24, 36, 6.6
        width = {id(b): 20 + letter * max(len(b.title), len(b.detail)) for r in rows for b in r}
        total = max(sum(width[id(b)] + gap_x for b in row) - gap_x for row in rows)
        for row in rows:
            x = (total - sum(width[id(b)] + gap_x for b in row) + gap_x) / 2
            for box in row:
                box.x = x + width[id(box)] / 2
                x += width[id(box)] + gap_x
        top = len(rows) - 1

        def y_of(box: Box) -> int:
            return (top - box.row) * (height + gap_y)
        parts = []
        for row in rows:
            for box in row:
                for source, output in box.inputs:
                    y1, y2 = y_of(source) + height, y_of(box)
                    bend = (y2 - y1) / 2
                    parts.append(f'<path d="M{source.x:.1f} {y1} C{source.x:.1f} {y1 + bend:.0f} '
                                 f'{box.x:.1f} {y2 - bend:.0f} {box.x:.1f} {y2}" class="edge" '
                                 'marker-end="url(#arrow)"/>')
                    if source.several:
                        parts.append(f'<text x="{(source.x + box.x) / 2:.1f}" '
                                     f'y="{(y1 + y2) / 2:.0f}" class="detail">{output}</text>')
                if box.cut:
                    parts.append(f'<text x="{box.x:.1f}" y="{y_of(box) - 6}" class="title">…'
                                 "</text>")
        parts += [self._box_svg(box, width[id(box)], y_of(box), height)
                  for row in rows for box in row]
        down = (top + 1) * (height + gap_y) - gap_y
        return _FRAME.format(width=total + 20, height=down + 20, body="\n".join(parts))

    @staticmethod
    def _box_svg(box: Box, width: float, y: int, height: int) -> str:
        kind = "leaf" if box.leaf else "op"
        return (f'<rect x="{box.x - width / 2:.1f}" y="{y}" width="{width:.1f}" height="{height}" '
                f'rx="7" class="{kind}"/>'
                f'<text x="{box.x:.1f}" y="{y + 17}" class="title">{html.escape(box.title)}</text>'
                f'<text x="{box.x:.1f}" y="{y + 32}" class="detail">{html.escape(box.detail)}'
                "</text>")

    def _rows(self) -> list[list[Box]]:
        """Rows by the longest way to a result; within a row, near to what they feed."""
        left: dict[int, int] = {}
        for box in self._boxes.values():
            for source, _ in box.inputs:
                left[id(source)] = left.get(id(source), 0) + 1
        waiting = [b for b in self._boxes.values() if not left.get(id(b))]
        rows: list[list[Box]] = []
        feeds: dict[int, list[float]] = {}
        while waiting:
            box = waiting.pop()
            for source, _ in box.inputs:
                source.row = max(source.row, box.row + 1)
                left[id(source)] -= 1
                if not left[id(source)]:
                    waiting.append(source)
        for box in self._boxes.values():
            while len(rows) <= box.row:
                rows.append([])
            rows[box.row].append(box)
        for row in rows:
            row.sort(key=lambda b: sum(feeds.get(id(b), [0])) / len(feeds.get(id(b), [0])))
            for place, box in enumerate(row):
                for source, _ in box.inputs:
                    feeds.setdefault(id(source), []).append(place)
        return rows

    def _repr_svg_(self) -> str:
        return self.svg()

    def save(self, path: Any) -> None:
        """Write a file: SVG, DOT (`.dot`, `.gv`) or text (`.txt`), by its name."""
        name = str(path)
        if name.endswith((".dot", ".gv")):
            text = self.dot()
        elif name.endswith(".txt"):
            text = str(self) + "\n"
        elif name.endswith(".svg"):
            text = self.svg()
        else:
            raise ValueError(f"draw: a file name ends in .svg, .dot, .gv or .txt, but got {name!r}")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


_FRAME = """<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" \
viewBox="-10 -10 {width:.0f} {height:.0f}" font-family="Helvetica, Arial, sans-serif">
<style>.op{{fill:#eef2f7;stroke:#8796a8}}.leaf{{fill:#d6ecd2;stroke:#6f9a67}}\
.edge{{fill:none;stroke:#8796a8}}.title{{font-size:12px;font-weight:bold;text-anchor:middle}}\
.detail{{font-size:10px;fill:#555;text-anchor:middle}}</style>
<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" \
orient="auto"><path d="M0 0L8 4L0 8z" fill="#8796a8"/></marker></defs>
{body}
</svg>
"""

__all__ = ["Drawing", "draw"]

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
from typing import Any

from flambeau import Tensor
from flambeau.autograd.graph import get_gradient_edge
from flambeau.autograd.hooks import AccumulateGrad

BRANCH, LAST, LINE, GAP = "├─ ", "└─ ", "│  ", "   "


def draw(tensors: Any, *, names: Mapping[str, Tensor] | None = None,
         saved: bool = False) -> Drawing:
    """A picture of the graph that gave `tensors`, one or several.

    In a terminal, `print(draw(y))` shows a tree, in which a node of one input stands above it and
    several are indented; a notebook shows an SVG. `.svg()` and `.dot()` give those as text, and
    `.save("graph.svg")` (or `.dot`, `.txt`) writes a file. `names` labels leaves: a dictionary such
    as `dict(model.named_parameters())`. `saved` shows what nodes keep for backward.
    """
    given = (tensors,) if isinstance(tensors, Tensor) else tuple(tensors)
    labels = {id(t): name for name, t in (names or {}).items()}
    return Drawing([get_gradient_edge(t).node for t in given], labels, saved)


class Box:
    """A node as it is drawn."""

    def __init__(self, node: Any, title: str, detail: str, leaf: bool):
        self.node, self.title, self.detail, self.leaf = node, title, detail, leaf
        self.inputs: list[Box] = []
        self.row = 0
        self.x = 0.0


class Drawing:
    """A graph, to be shown as text, SVG or DOT."""

    def __init__(self, roots: Iterable[Any], labels: Mapping[int, str], saved: bool):
        self._labels, self._saved = labels, saved
        self._boxes: dict[int, Box] = {}
        self._keep: list[Any] = []
        self._roots = [self._box(node) for node in roots]
        self._collect()

    # ---- the graph ------------------------------------

    def _box(self, node: Any) -> Box:
        box = self._boxes.get(id(node))
        if box is None:
            self._keep.append(node)
            box = self._boxes[id(node)] = Box(node, *self._text(node))
        return box

    def _collect(self) -> None:
        """Make all boxes; with a stack, since graphs may be deep."""
        waiting, seen = list(self._roots), set()
        while waiting:
            box = waiting.pop()
            if id(box) in seen:
                continue
            seen.add(id(box))
            for node, _ in box.node.next_functions:
                if node is not None:
                    source = self._box(node)
                    box.inputs.append(source)
                    waiting.append(source)

    def _text(self, node: Any) -> tuple[str, str, bool]:
        if isinstance(node, AccumulateGrad):
            leaf = node.variable
            kind = "parameter" if type(leaf).__name__ == "Parameter" else "leaf"
            title = self._labels.get(id(leaf), kind)
            return title, f"{leaf.dtype} {list(leaf.shape)}", True
        title = re.sub(r"Backward\d*$", "", node.name().rpartition("::")[2])
        title = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", title).lower()
        metadata = node._input_metadata
        detail = ", ".join(f"{m.dtype} {list(m.shape)}" for m in metadata)
        if self._saved:
            kept = list(getattr(node, "saved_names", ()))
            detail += f"  saves {', '.join(kept)}" if kept else ""
        return title, detail, False

    def __len__(self) -> int:
        return len(self._boxes)

    # ---- text ------------------------------------

    def __str__(self) -> str:
        """A tree; what was shown already is marked with ↑ and not repeated."""
        lines: list[str] = []
        shown: dict[int, int] = {}
        repeated = self._repeated()
        waiting = [(box, "", "", "") for box in reversed(self._roots)]
        while waiting:
            box, prefix, branch, below = waiting.pop()
            mark = ""
            again = id(box) in shown
            if id(box) in repeated:
                number = shown.setdefault(id(box), len(shown) + 1)
                mark = f"  ↑{number}" if again else f"  ({number})"
            lines.append(f"{prefix}{branch}{box.title}{'' if again else '  ' + box.detail}{mark}")
            if again:
                continue
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
        for box in self._boxes.values():
            for source in box.inputs:
                counts[id(source)] = counts.get(id(source), 0) + 1
        return {key for key, n in counts.items() if n > 1}

    # ---- DOT ------------------------------------

    def dot(self) -> str:
        """The graph in Graphviz's language."""
        numbers = {key: i for i, key in enumerate(self._boxes)}
        lines = ["digraph {", '  node [shape=box, style="rounded,filled", fillcolor="#eef2f7", '
                 'fontname="Helvetica", fontsize=11];']
        for key, box in self._boxes.items():
            label = f"{box.title}\\n{box.detail}".replace('"', '\\"')
            color = ', fillcolor="#d6ecd2"' if box.leaf else ""
            lines.append(f'  n{numbers[key]} [label="{label}"{color}];')
        for key, box in self._boxes.items():
            lines += [f"  n{numbers[id(s.node)]} -> n{numbers[key]};" for s in box.inputs]
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
                for source in box.inputs:
                    y1, y2 = y_of(source) + height, y_of(box)
                    bend = (y2 - y1) / 2
                    parts.append(f'<path d="M{source.x:.1f} {y1} C{source.x:.1f} {y1 + bend:.0f} '
                                 f'{box.x:.1f} {y2 - bend:.0f} {box.x:.1f} {y2}" class="edge" '
                                 'marker-end="url(#arrow)"/>')
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
            for source in box.inputs:
                left[id(source)] = left.get(id(source), 0) + 1
        waiting = [b for b in self._boxes.values() if not left.get(id(b))]
        rows: list[list[Box]] = []
        feeds: dict[int, list[float]] = {}
        while waiting:
            box = waiting.pop()
            for source in box.inputs:
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
                for source in box.inputs:
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

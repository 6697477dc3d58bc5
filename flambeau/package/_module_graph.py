"""Which modules the modules of a package import."""
from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any


@dataclass
class _Graph:
    """Which module needs which."""
    edges: dict[str, dict[str, None]] = field(default_factory=dict)

    def add(self, node: str, needed: str | None = None) -> None:
        found = self.edges.setdefault(node, {})
        if needed is not None:
            found.setdefault(needed)
            self.edges.setdefault(needed, {})

    def dot(self, edges: Any = None) -> str:
        """The graph in the language DOT."""
        pairs = [(a, b) for a, found in self.edges.items() for b in found] \
            if edges is None else edges
        lines = "\n".join(f'"{a}" -> "{b}";' for a, b in pairs)
        return f"digraph G {{\nrankdir = LR;\nnode [shape=box];\n{lines}\n}}\n"

    def between(self, source: str, target: str) -> list[tuple[str, str]]:
        """The edges of all paths from one to the other."""
        if source not in self.edges:
            raise ValueError(f"The node {source} is not in the digraph.")
        forward, backward = self._reach(source, self.edges), self._reach(target, self._turned())
        return [(a, b) for a in self.edges for b in self.edges[a]
                if a in forward and b in backward and b in forward and a in backward]

    def _turned(self) -> dict[str, dict[str, None]]:
        turned: dict[str, dict[str, None]] = {name: {} for name in self.edges}
        for a, found in self.edges.items():
            for b in found:
                turned[b][a] = None
        return turned

    @staticmethod
    def _reach(start: str, edges: dict[str, dict[str, None]]) -> set[str]:
        seen, todo = {start}, [start]
        while todo:
            for found in edges.get(todo.pop(), ()):
                if found not in seen:
                    seen.add(found)
                    todo.append(found)
        return seen


def imported_modules(name: str, source: str, is_package: bool) -> list[str]:
    """The modules that a module's source imports; of `from a import b` both a and a.b."""
    package = name if is_package else name.rpartition(".")[0]
    found: dict[str, None] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update(dict.fromkeys(alias.name for alias in node.names))
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[:len(package.split(".")) - node.level + 1] \
                if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            found[module] = None
            for alias in node.names:
                if alias.name != "*":
                    found[f"{module}.{alias.name}"] = None
    return list(found)

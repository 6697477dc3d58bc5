"""`visualize_sharding`: which process has which piece of a tensor, as a table."""
from __future__ import annotations

from itertools import product
from typing import Any

from flambeau.distributed.tensor._utils import _compute_local_shape_and_global_offset

__all__ = ["visualize_sharding"]

Shards = dict[tuple[tuple[int, int], tuple[int, int]], list[int]]


def visualize_sharding(dtensor: Any, header: str = "", use_rich: bool = False) -> None:
    """Print the pieces of a tensor of one or two dimensions, and who has them; only the first
    process of the mesh prints. `use_rich`: in colours, where the package `rich` is installed."""
    if dtensor.numel() == 0:
        return
    if dtensor.ndim not in (1, 2):
        raise RuntimeError("visualize sharding supports only 1D or 2D DTensor")
    mesh = dtensor.device_mesh
    coordinate = mesh.get_coordinate()
    if coordinate is None or any(coordinate):
        return
    shards: Shards = {}
    for place in product(*map(range, mesh.shape)):
        shape, offset = _compute_local_shape_and_global_offset(
            dtensor.shape, mesh.shape, place, dtensor.placements)
        if 0 in shape:
            continue
        rows = (offset[0], offset[0] + shape[0] - 1)
        columns = (offset[1], offset[1] + shape[1] - 1) if dtensor.ndim == 2 else (0, 0)
        shards.setdefault((rows, columns), []).append(int(mesh.mesh[place]))
    if header:
        print(header)
    if use_rich and _print_in_colours(shards, mesh.device_type):
        return
    print(_create_table(shards, mesh.device_type))


def _cells(shards: Shards, device_kind: str) -> tuple[list[Any], list[Any], Any]:
    """The rows, the columns, and what is where they cross."""
    rows = sorted({rows for rows, _ in shards})
    columns = sorted({columns for _, columns in shards})

    def cell(row: Any, column: Any) -> str:
        found = shards.get((row, column))
        return "" if found is None else f"{device_kind}:{','.join(map(str, sorted(found)))}"
    return rows, columns, cell


def _create_table(shards: Shards, device_kind: str = "") -> str:
    """A table of who has which piece.

    >>> print(_create_table({((0, 1), (0, 3)): [0], ((2, 3), (0, 3)): [1, 2]}, "cpu"))
             Col 0-3
    -------  ---------
    Row 0-1  cpu:0
    Row 2-3  cpu:1,2
    """
    rows, columns, cell = _cells(shards, device_kind)
    table = [["", *[f"Col {a}-{b}" for a, b in columns]]]
    table += [[f"Row {a}-{b}", *[cell((a, b), c) for c in columns]] for a, b in rows]
    # A heading has room on both sides, as in the tables of the package `tabulate`.
    widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
    widths = [max(w, len(table[0][i]) + 2) for i, w in enumerate(widths)]
    table.insert(1, ["-" * w for w in widths])
    return "\n".join("  ".join(text.ljust(w) for text, w in zip(line, widths)).rstrip()
                     for line in table)


def _print_in_colours(shards: Shards, device_kind: str) -> bool:
    """Print a table with `rich`, if that is there."""
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        return False
    rows, columns, cell = _cells(shards, device_kind)
    table = Table(show_lines=True)
    table.add_column("")
    for a, b in columns:
        table.add_column(f"Col {a}-{b}")
    colours = ("red", "green", "blue", "magenta", "cyan", "yellow")
    for i, (a, b) in enumerate(rows):
        table.add_row(f"Row {a}-{b}", *[
            f"[{colours[(i * len(columns) + j) % len(colours)]}]{cell((a, b), c)}[/]"
            for j, c in enumerate(columns)])
    Console().print(table)
    return True

"""The table of a profile."""
from __future__ import annotations

import math
from typing import Any

WIDTH, SPACING = 12, 2
SOURCE = "Source Location"
_FLOPS = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")
_UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}


def _format_time(time_us: float) -> str:
    """Microseconds, in the unit that suits them."""
    if time_us >= 1e6:
        return f"{time_us / 1e6:.3f}s"
    if time_us >= 1e3:
        return f"{time_us / 1e3:.3f}ms"
    return f"{time_us:.3f}us"


def _format_memory(nbytes: int) -> str:
    """Bytes, in the unit that suits them."""
    for factor, unit in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if abs(nbytes) >= factor:
            return f"{nbytes / factor:.2f} {unit}"
    return f"{nbytes} B"


def _format_time_share(time_us: float, total_time_us: float) -> str:
    if total_time_us == 0:
        if time_us != 0:
            raise AssertionError(f"Expected time_us == 0 but got {time_us}")
        return "NaN"
    return f"{time_us * 100.0 / total_time_us:.2f}%"


def build_table(events: Any, sort_by: str | None, row_limit: int, max_source: int, max_name: int,
                max_shapes: int, header: str | None, top_level_only: bool,
                time_unit: str | None) -> str:
    """Rows of equal columns: the name, times and their shares, memory, calls, shapes, source."""
    if not events:
        return ""
    shown = events
    if sort_by is not None:
        key = sort_by.replace("cuda", "device")
        shown = sorted(events, key=lambda e: getattr(e, key), reverse=True)
    total = sum(e.self_cpu_time_total for e in events)

    def time(us: float) -> str:
        return _format_time(us) if time_unit is None else f"{us / _UNITS[time_unit]:.3f}{time_unit}"
    columns: list[Any] = [
        ("Name", _width([e.key for e in events], max_name), lambda e: _cut(e.key, max_name)),
        ("Self CPU %", WIDTH, lambda e: _format_time_share(e.self_cpu_time_total, total)),
        ("Self CPU", WIDTH, lambda e: time(e.self_cpu_time_total)),
        ("CPU total %", WIDTH,
         lambda e: "0.00%" if e.is_async else _format_time_share(e.cpu_time_total, total)),
        ("CPU total", WIDTH, lambda e: time(e.cpu_time_total)),
        ("CPU time avg", WIDTH, lambda e: time(e.cpu_time))]
    if getattr(events, "_profile_memory", False):
        columns += [("CPU Mem", WIDTH, lambda e: _format_memory(e.cpu_memory_usage)),
                    ("Self CPU Mem", WIDTH, lambda e: _format_memory(e.self_cpu_memory_usage))]
    columns.append(("# of Calls", WIDTH, lambda e: str(e.count)))
    shapes = [str(e.input_shapes) for e in events if e.input_shapes]
    if shapes:
        columns.append(("Input Shapes", _width(shapes, max_shapes),
                        lambda e: _cut(str(e.input_shapes), max_shapes)))
    sources = [line for e in events for line in e.stack or ()]
    if sources:
        columns.append((SOURCE, _width([e.stack[0] for e in events if e.stack], max_source),
                        lambda e: [_end(line, max_source) for line in e.stack or [""]]))
    flops = [e.flops for e in events if e.flops] if getattr(events, "_with_flops", False) else []
    if flops:
        unit = min(int(math.log10(min(flops)) / 3), len(_FLOPS) - 1)
        columns.append((f"Total {_FLOPS[unit]}", WIDTH,
                        lambda e: f"{e.flops / 1000 ** unit:.3f}" if e.flops else "--"))
    return _lines(columns, shown, row_limit, header, top_level_only) \
        + f"Self CPU time total: {time(total)}\n"


def _width(texts: list[str], limit: int) -> int:
    longest = max(map(len, texts)) + 4
    return min(longest, limit) if limit > 0 else longest


def _cut(text: str, limit: int) -> str:
    return text if limit <= 0 or len(text) <= limit else text[:limit - 3] + "..."


def _end(path: str, limit: int) -> str:
    return path if limit <= 0 or len(path) <= limit else "..." + path[3 - limit:]


def _row(columns: list[Any], cells: list[str]) -> str:
    """Cells to the right of their columns, but places in the source to the left."""
    gap = " " * SPACING
    return gap.join(cell.ljust(width) if title == SOURCE else cell.rjust(width)
                    for (title, width, _), cell in zip(columns, cells)) + gap


def _lines(columns: list[Any], events: Any, row_limit: int, header: str | None,
           top_level_only: bool) -> str:
    rule = _row(columns, ["-" * width for _, width, _ in columns])
    double = "=" * (len(rule) - SPACING)
    lines = []
    if header is not None:
        lines += [double, header]
    if top_level_only:
        lines += [double, "This report only display top-level ops statistics"]
    lines += [rule, _row(columns, [title for title, _, _ in columns]), rule]
    rows = 0
    for event in events:
        if rows == row_limit:
            break
        if top_level_only and event.cpu_parent is not None:
            continue
        rows += 1
        cells = [text(event) for _, _, text in columns]
        lines.append(_row(columns, [c if isinstance(c, str) else c[0] for c in cells]))
        for stack in (c for c in cells if not isinstance(c, str)):    # the frames further out
            for line in [*stack[1:], ""]:
                lines.append(_row(columns, [line if c is stack else "" for c in cells]))
    return "\n".join([*lines, rule]) + "\n"

"""`Compare`: measurements side by side."""
from __future__ import annotations

from typing import Any

from flambeau._support.lazy.modules import stand_in
from flambeau.utils.benchmark.measurement import (
    Measurement,
    select_unit,
    trim_sigfig,
    unit_to_english,
)


class Compare:
    """Tables of measurements: one a label, with a column a description and a row a sub-label.

    >>> from flambeau.utils.benchmark import Compare, Measurement, TaskSpec
    >>> task = TaskSpec("x + y", "", label="L", sub_label="S", description="D")
    >>> print(str(Compare([Measurement(1, [0.0011], task)])).replace("D ", "D"))
    [----- L -----]
             |   D
    1 threads: ----
          S  |  1.1
    <BLANKLINE>
    Times are in milliseconds (ms).
    <BLANKLINE>
    """

    def __init__(self, results: list[Measurement]):
        self._results: list[Measurement] = []
        self._trim = False
        self._warn = False
        self.extend_results(results)

    def extend_results(self, results: Any) -> None:
        """Add measurements."""
        for result in results:
            if not isinstance(result, Measurement):
                raise ValueError("Expected an instance of `Measurement`, "
                                 f"got {type(result)} instead.")
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Show no more digits than the spread of the times allows."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Not offered: tables are plain text."""
        raise NotImplementedError("Compare.colorize")

    def highlight_warnings(self) -> None:
        """Mark times that scatter with an exclamation mark and their range in per cent."""
        self._warn = True

    def print(self) -> None:
        """Print the tables."""
        print(self)

    def __str__(self) -> str:
        merged = Measurement.merge(self._results)
        titles = dict.fromkeys(m.label or "" for m in merged)
        return "\n".join(self._table(title, [m for m in merged if (m.label or "") == title])
                         for title in titles)

    def _table(self, title: str, results: list[Measurement]) -> str:
        unit, scale = select_unit(min(m.median for m in results))
        columns = list(dict.fromkeys(m.description or m.stmt for m in results))
        threads = sorted({m.num_threads for m in results})
        rows = list(dict.fromkeys(m.as_row_name for m in results))
        cells = {(m.num_threads, m.as_row_name, m.description or m.stmt): self._cell(m, scale)
                 for m in results}
        names = max(len(f"      {row}  ") for row in rows)
        names = max(names, len("1 threads: ") - 2 if len(threads) else 0)
        widths = [max(len(c) + 2, *(len(cells.get((n, r, c), "")) + 2 for n in threads
                                    for r in rows)) for c in columns]
        head = " " * names + "".join(f"|{c + ' ':>{w}}" for c, w in zip(columns, widths))
        lines = [f"[{f' {title} ':-^{len(head) - 2}}]" if title
                 else "[" + "-" * (len(head) - 2) + "]", head]
        for count in threads:
            lines.append(f"{count} threads: ".ljust(len(head), "-"))
            for row in rows:
                found = [cells.get((count, row, c)) for c in columns]
                if any(found):
                    lines.append(f"      {row}".ljust(names) + "".join(
                        f"|{cell or '':>{w}}" for cell, w in zip(found, widths)))
        return "\n".join(lines) + f"\n\nTimes are in {unit_to_english(unit)}s ({unit}).\n"

    def _cell(self, m: Measurement, scale: float) -> str:
        value = m.median / scale
        digits = 1 if value < 100 else 0
        if self._trim:
            value = trim_sigfig(value, m.significant_figures)
        text = f"{value:.{digits}f}"
        if self._warn and m.has_warnings:
            text = f"(! {m.iqr / m.median * 100:.0f}%) {text}"
        return text
stand_in("utils.benchmark.utils.compare", Compare)

"""Write `docs/speed.md`: ``python benchmarks/page.py --torch-python PATH``, on a machine at rest.

Measures every row beside PyTorch, on one thread and on two, and what the machine can do at most
(`limits.py`). `--busy` keeps a core at work meanwhile, and prints the means instead of the page.
"""

import os
import subprocess
import sys
from pathlib import Path

from limits import processor
from rows import FLOPS
from run import Library, arguments, chosen, geometric_mean, group_of, measure

PAGE = Path(__file__).parent.parent / "docs" / "speed.md"
THREADS = (1, 2)

HEAD = """# Speed

Written by `benchmarks/page.py`; the rows are in `benchmarks/rows/`. A ratio is flambeau's time by
PyTorch's, of one run on one machine, where the two take turns: below 1 flambeau is faster. Single
rows move by some percent from run to run.

flambeau {ours} beside PyTorch {theirs}, {machine}, {cores} cores.

| the machine at most | 1 thread | 2 threads |
| --- | ---: | ---: |
| reading and writing memory (a copy of 128 MB) | {copy[0]:.1f} GB/s | {copy[1]:.1f} GB/s |
| products and sums (matrices of 1024 x 1024) | {flops[0]:.0f} GFLOP/s | {flops[1]:.0f} GFLOP/s |

In the tables of kernels, *of the copy* is the share of that memory speed at which a row reads its
arguments and writes its result, with 2 threads; what fits in the caches can exceed it. *Of the
products* is the share of the arithmetic.
"""


def limits(threads):
    """Bytes and flops of a second."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads),
                   "OPENBLAS_NUM_THREADS": str(threads)}
    script = Path(__file__).with_name("limits.py")
    answer = subprocess.run([sys.executable, script], env=environment, check=True,
                            capture_output=True, text=True)
    return [float(value) for value in answer.stdout.split()]


def measured(options):
    """For each row: the times of both libraries on one thread and on two, and the bytes moved."""
    pairs = [[Library(sys.executable, "flambeau", n), Library(options.torch_python, "torch", n)]
             for n in THREADS]
    found = {}
    for row in chosen(options):
        times = [measure(pair, row, options.turns) for pair in pairs]
        found[row] = times, pairs[0][0].bytes
        print(row, *([f"{t * 1e6:.1f}" if not isinstance(t, str) else t for t in both]
                     for both in times), file=sys.stderr, flush=True)
    versions = [library.version for library in pairs[0]]
    for pair in pairs:
        for library in pair:
            library.close()
    return found, versions


def means(found):
    """For each group: the geometric means of the ratios on one thread and on two, and how many
    rows on two threads are at or below 1."""
    groups = {}
    for row, (times, _) in found.items():
        if not any(isinstance(t, str) for both in times for t in both):
            groups.setdefault(group_of(row), []).append([ours / theirs for ours, theirs in times])
    lines = ["| group | rows | ratio, 1 thread | ratio, 2 threads | rows at or below 1 |",
             "| --- | ---: | ---: | ---: | ---: |"]
    for group, ratios in groups.items():
        one, two = zip(*ratios, strict=True)
        lines.append(f"| {group} | {len(ratios)} | {geometric_mean(one):.2f} | "
                     f"{geometric_mean(two):.2f} | {sum(r <= 1.05 for r in two)} |")
    return "\n".join(lines)


def table(found, group, bandwidth, flops):
    """The rows of a group: flambeau's time on one thread and on two, and the ratios."""
    limited = group in ("kernels", "shapes")
    lines = ["| row | 1 thread | ratio | 2 threads | ratio |"
             + " of the copy | of the products |" * limited,
             "| --- | ---: | ---: | ---: | ---: |" + " ---: | ---: |" * limited]
    for row, (times, size) in found.items():
        if group_of(row) != group:
            continue
        name = row.partition(": ")[2].replace("|", "\\|")
        cells = [f"`{name}`" if "(" in name or "[" in name or " @ " in name else name]
        for ours, theirs in times:
            wrong = [t for t in (ours, theirs) if isinstance(t, str)]
            cells += [wrong[0], ""] if wrong else [f"{ours * 1e6:.1f} µs", f"{ours / theirs:.2f}"]
        if limited:
            took, work = times[1][0], FLOPS.get(row)
            cells.append(f"{size / took / bandwidth:.0%}" if size and not work else "")
            cells.append(f"{work / took / flops:.0%}" if work else "")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = arguments(__doc__)
    parser.add_argument("--busy", action="store_true", help="another process keeps a core at work")
    options = parser.parse_args()
    if options.busy:
        spin = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        os.sched_setaffinity(spin.pid, {0})
        try:
            print(means(measured(options)[0]))
        finally:
            spin.kill()
        return
    copy, flops = zip(*(limits(n) for n in THREADS), strict=True)
    found, (ours, theirs) = measured(options)
    parts = [HEAD.format(ours=ours, theirs=theirs, machine=processor(), cores=os.cpu_count(),
                         copy=[c / 1e9 for c in copy], flops=[f / 1e9 for f in flops]),
             means(found)]
    for group in dict.fromkeys(map(group_of, found)):
        parts.append(f"\n## {group.capitalize()}\n\n{table(found, group, copy[1], flops[1])}")
    PAGE.write_text("\n".join(parts) + "\n")


if __name__ == "__main__":
    main()

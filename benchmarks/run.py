"""flambeau beside PyTorch: ``python benchmarks/run.py [-k WORD] [--torch-python PATH]``.

Each library runs in a process of its own, and the two take turns, so that both meet the same noise.
A row shows the fastest turn of each in microseconds, and the ratio flambeau / PyTorch: below 1
flambeau is faster. Where the interpreter has no PyTorch, flambeau's times stand alone.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time

from rows import ROWS, bytes_moved

LEAST = 0.02  # seconds that a turn lasts at least, but for rows that take longer


def seconds(function, clock):
    """One turn: the time of a call, over as many calls as fill a turn."""
    number, taken = 1, 0.0
    while True:
        start = clock()
        for _ in range(number):
            function()
        taken = clock() - start
        if taken >= LEAST:
            return taken / number
        number = max(number * 2, math.ceil(1.2 * number * LEAST / max(taken, 1e-9)))


def serve(library, clock):
    """In a process of its own: answer names of rows with times, and with the bytes they move."""
    clock = time.process_time if clock == "cpu" else time.perf_counter
    torch = __import__(library)
    prepared = {}
    print(json.dumps(torch.__version__), flush=True)
    for line in sys.stdin:
        name = json.loads(line)
        try:
            if name not in prepared:
                torch.manual_seed(0)
                prepared.clear()
                run = ROWS[name](torch)
                prepared[name] = run, bytes_moved(run, run())
            run, size = prepared[name]
            answer = {"seconds": seconds(run, clock), "bytes": size}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


class Library:
    """A process that times rows."""

    def __init__(self, python, name, threads, clock="elapsed"):
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads),
                       "OPENBLAS_NUM_THREADS": str(threads)}
        command = [python, __file__, "--serve", name, "--clock", clock]
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        text=True)
        first = self.process.stdout.readline()
        self.version = json.loads(first) if first else None
        self.bytes = None   # that the last row moved

    def time(self, row):
        """Seconds, or what was raised."""
        self.process.stdin.write(json.dumps(row) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        self.bytes = answer.get("bytes")
        return answer.get("seconds", answer.get("error"))

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def measure(libraries, row, turns):
    """The fastest turn of each library, or what it raised."""
    best = [math.inf] * len(libraries)
    for _ in range(turns):
        for i, library in enumerate(libraries):
            if not isinstance(best[i], str):
                found = library.time(row)
                best[i] = found if isinstance(found, str) else min(best[i], found)
    return best


def group_of(row):
    return row.partition(":")[0]


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def arguments(description):
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("-k", default="", help="only rows that contain this word")
    parser.add_argument("--group", action="append", help="only rows of this group")
    parser.add_argument("--torch-python", default=sys.executable, help="an interpreter with torch")
    parser.add_argument("--turns", type=int, default=7)
    return parser


def chosen(options):
    return [row for row in ROWS
            if options.k in row and (not options.group or group_of(row) in options.group)]


def main():
    parser = arguments(__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--clock", choices=("elapsed", "cpu"), default="elapsed",
                        help="cpu: the processor's time, for one thread on a busy machine")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options.serve, options.clock)

    libraries = [Library(python, name, options.threads, options.clock)
                 for python, name in ((sys.executable, "flambeau"),
                                      (options.torch_python, "torch"))]
    if libraries[0].version is None:
        raise SystemExit("flambeau cannot be imported")
    libraries = [library for library in libraries if library.version is not None]
    print(" beside ".join(library.version for library in libraries), f"({options.threads} threads)")
    ratios = {}
    for row in chosen(options):
        best = measure(libraries, row, options.turns)
        texts = [b[:40] if isinstance(b, str) else f"{1e6 * b:12.1f}" for b in best]
        if len(best) == 2 and not any(isinstance(b, str) for b in best):
            ratios.setdefault(group_of(row), []).append(best[0] / best[1])
            texts.append(f"{best[0] / best[1]:6.2f}")
        print(f"{row:62}", *texts, flush=True)
    for group, values in ratios.items():
        print(f"{group}: geometric mean of {len(values)} ratios {geometric_mean(values):.2f}")
    for library in libraries:
        library.close()


if __name__ == "__main__":
    main()

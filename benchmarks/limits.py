"""What the machine can do at most: ``OMP_NUM_THREADS=2 python benchmarks/limits.py``.

Prints the bytes that it reads and writes in a second when threads copy 128 MB of memory, and the
products and sums of a second when NumPy multiplies matrices of 1024 x 1024.
"""

import os
import platform
import threading
import time
from pathlib import Path

import numpy as np

THREADS = int(os.environ.get("OMP_NUM_THREADS", "1"))


def processor():
    """The name of the processor."""
    info = Path("/proc/cpuinfo")
    names = [line.partition(":")[2].strip() for line in
             (info.read_text().splitlines() if info.exists() else ()) if "model name" in line]
    return names[0] if names else platform.processor() or platform.machine()


def fastest(run):
    times = []
    for _ in range(9):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def copy(target, source):
    parts = [threading.Thread(target=np.copyto, args=pair) for pair in zip(
        np.array_split(target, THREADS), np.array_split(source, THREADS), strict=True)]
    for part in parts:
        part.start()
    for part in parts:
        part.join()


def main():
    source, target = np.ones(1 << 25, "f4"), np.zeros(1 << 25, "f4")
    matrix = np.ones((1024, 1024), "f4")
    print(2 * source.nbytes / fastest(lambda: copy(target, source)),
          2 * 1024**3 / fastest(lambda: matrix @ matrix))


if __name__ == "__main__":
    main()

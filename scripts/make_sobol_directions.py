"""Write flambeau/sobol_directions.npz: S. Joe and F. Kuo's primitive polynomials and initial
direction numbers (new-joe-kuo-6, 2008) for the first 2048 of 21201 dimensions, as SciPy carries
them, in few bytes. All would be a twentieth of the package; those of more dimensions are read from
SciPy.

A polynomial is the number whose bits are its coefficients. The initial numbers of a dimension are
odd and below 2, 4, 8, …: of the k-th, k - 1 bits are stored, those of all dimensions that have
it one after the other.
"""

from pathlib import Path

import numpy as np
import scipy.stats

ROOT = Path(__file__).resolve().parent.parent
DIMENSIONS = 2048


def main() -> None:
    source = Path(scipy.stats.__file__).with_name("_sobol_direction_numbers.npz")
    found = np.load(source)
    polynomials, initial = found["poly"][:DIMENSIONS], found["vinit"][:DIMENSIONS]
    degrees = np.array([int(p).bit_length() - 1 for p in polynomials])
    bits = []
    for k in range(1, initial.shape[1]):
        halves = initial[degrees > k, k] // 2
        bits.append((halves[:, None] >> np.arange(k) & 1).astype(np.uint8).ravel())
    np.savez_compressed(ROOT / "flambeau" / "sobol_directions.npz",
                        polynomials=np.diff(polynomials, prepend=0).astype(np.int32),
                        initial=np.packbits(np.concatenate(bits)))


if __name__ == "__main__":
    main()

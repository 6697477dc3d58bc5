"""The order in which PyTorch lists keywords that no signature takes: that of a C++ hash table.

A message about a wrong call names its keyword arguments as `std::unordered_map` of libstdc++ walks
over them: the last one in front, but one whose bucket is not empty in front of that bucket. Strings
are hashed by MurmurHash64A (Appleby, 2008), and there are 13 buckets for up to 13 keys.
"""
from __future__ import annotations

from collections.abc import Iterable

_BUCKETS = 13
_BITS = 2 ** 64 - 1
_FACTOR, _SEED = 0xc6a4a7935bd1e995, 0xc70f6907


def _hash(text: str) -> int:
    data = text.encode()
    whole = len(data) // 8 * 8
    result = _SEED ^ len(data) * _FACTOR & _BITS
    for i in range(0, whole, 8):
        word = _shift_mix(int.from_bytes(data[i:i + 8], "little") * _FACTOR & _BITS)
        result = (result ^ word * _FACTOR & _BITS) * _FACTOR & _BITS
    if whole < len(data):
        result = (result ^ int.from_bytes(data[whole:], "little")) * _FACTOR & _BITS
    return _shift_mix(_shift_mix(result) * _FACTOR & _BITS)


def _shift_mix(word: int) -> int:
    return word ^ word >> 47


def in_hash_order(names: Iterable[str]) -> list[str]:
    """The names as the table has them that they are put into one after the other.

    >>> in_hash_order(["device", "dtype", "requires_grad"])
    ['dtype', 'requires_grad', 'device']
    """
    found: list[tuple[int, str]] = []
    for name in names:
        bucket = _hash(name) % _BUCKETS
        place = next((i for i, (other, _) in enumerate(found) if other == bucket), 0)
        found.insert(place, (bucket, name))
    return [name for _, name in found]


__all__ = ["in_hash_order"]

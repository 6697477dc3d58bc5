"""Calls of the layout algebra; their results are in `tests/data/pycute.json`."""
from __future__ import annotations

import itertools


def results(p):
    """What each call gives, in words; `p` is the package."""
    L = p.Layout
    a, b = L((2, 4), (4, 1)), L((4, 2), (1, 8))
    nested = L((2, (2, 3)), (3, (1, 6)))
    found = {
        "tuples": lambda: (
            p.flatten(((1, 2), 3)), p.signum(-4), p.product((2, (3, 4))),
            p.inner_product((1, 2), (3, 4)), p.tuple_max((1, (5, 2))), p.elem_scale((2, 3), (4, 5)),
            p.has_none((1, None)), p.match_structure((1, (2, 3)), (4, (5, 6))), p.as_tuple(3)),
        "shape_div": lambda: (p.shape_div((3, 4), 6), p.shape_div(6, (2, 3)),
                              p.shape_div((6, 4), 12), p.shape_div(12, 4)),
        "suffix_product": lambda: (p.suffix_product((2, 3, 4)), p.suffix_product((2, (3, 4))),
                                   p.suffix_product(5), p.suffix_product((2, 3), 2)),
        "idx2crd": lambda: (p.idx2crd(5, (2, 4)), p.idx2crd(5, (2, (2, 2))),
                            p.idx2crd((1, 2), (2, 4)), p.idx2crd(7, (2, 4), (1, 2))),
        "crd2idx": lambda: (p.crd2idx((1, 2), (2, 4)), p.crd2idx(5, (2, 4), (1, 2)),
                            p.crd2idx((1, (1, 0)), (2, (2, 2))), p.crd2idx(None, (2, 3))),
        "crd2crd": lambda: (p.crd2crd(5, (2, 4)), p.crd2crd((1, 1), (2, 4), (2, 2)),
                            p.crd2crd((1, 1), 8, (2, 4))),
        "slice": lambda: (p.slice_((None, (None, 1)), (3, (4, 5))), p.slice_(None, 3),
                          p.slice_and_offset((None, 1), a), a(3), a(1, 2), a(None, 1)),
        "by dimension": lambda: (
            p.composition(a, (L(2), L(2))), p.logical_divide(L((4, 6)), (2, 3)),
            p.zipped_divide(L((4, 6)), (L(2), L(3))), p.tiled_divide(L((4, 6)), (L(2), L(3))),
            p.coalesce(L((2, (1, 6)), (6, (6, 1))), (1, 1))),
        "none": lambda: (p.composition(a, None), p.logical_divide(a, None), p.right_inverse(None),
                         p.logical_product(a, None), p.left_inverse(5))}
    for x in (a, b, nested, L(1, 0), L((4, 2), (0, 1)), L((2, 2, 2), (4, 2, 1)), L(6, 2)):
        for name in ("coalesce", "filter", "right_inverse", "left_inverse", "size", "cosize"):
            found[f"{name} {x}"] = lambda name=name, x=x: getattr(p, name)(x)
        found[f"complement {x}"] = lambda x=x: p.complement(x, 24)
    for x, y in itertools.product(
            (a, b, L(24, 1), L((4, 6), (6, 1)), L((2, 2, 6), (12, 6, 1))),
            (L(4, 2), L((2, 2), (1, 4)), L(2, 1), L((2, 3), (1, 4)))):
        for name in ("composition", "logical_divide", "logical_product", "zipped_divide",
                     "tiled_divide", "zipped_product", "tiled_product"):
            found[f"{name} {x} {y}"] = lambda name=name, x=x, y=y: getattr(p, name)(x, y)
    return {name: _worded(call) for name, call in found.items()}


def _worded(call):
    try:
        return repr(call())
    except AssertionError:
        return "AssertionError"

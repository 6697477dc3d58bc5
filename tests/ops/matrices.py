"""Matrices for samples of linear algebra, and samples that several of its modules share."""
import numpy as np
from samples import call

KINDS = ("real", "complex")


def square(r, *lead, n=3, kind="real"):
    """Well-conditioned matrices, real and complex."""
    a = r.rng.randn(*lead, n, n)
    if kind == "complex":
        a = a + 1j * r.rng.randn(*lead, n, n)
    return a + 2.5 * np.eye(n)


def matrix(r, *shape, kind="real"):
    return r.complex(*shape) if kind == "complex" else r.normal(*shape)


def definite(r, *lead, n=3, kind="real"):
    a = square(r, *lead, n=n, kind=kind)
    return a @ np.conj(np.swapaxes(a, -1, -2)) + np.eye(n)


def of_square(family, *names, batched=True, **options):
    """Ops of one square matrix, or of several."""
    for name in names:
        def draw(r, name=name):
            calls = [call(square(r, kind=k), **options) for k in KINDS]
            return calls + ([call(square(r, 2, kind=k), **options) for k in KINDS]
                            if batched else [])
        family[name] = draw


def lower_only(family, *names):
    """Ops that read one triangle: differences in the other are no derivatives."""
    for name in names:
        @family(name)
        def _(r):
            return [call(definite(r, *lead, kind=k)).but(smooth=False)
                    for k in KINDS for lead in ((), (2,))]


def both(r, *shapes, draw="normal", **options):
    """One call with real, and one with complex tensors."""
    return [call(*[getattr(r, draw)(*s) for s in shapes], **options),
            call(*[r.complex(*s) for s in shapes], **options)]


def products(family, *shapes, integers=True, **options):
    """Registers ops of tensors of these shapes, also of whole numbers."""
    def enter(*names):
        for name in names:
            def draw(r):
                calls = both(r, *shapes, **options)
                if integers:
                    calls.append(call(*[r.integers(-3, 4, *s) for s in shapes], **options))
                return calls
            family[name] = draw
    return enter

"""Samples of products of vectors, matrices and tensors."""
import numpy as np
from samples import Samples, call

family = Samples()


def both(r, *shapes, **options):
    """One call with real, and one with complex tensors."""
    return [call(*[np.asarray(r.rng.randn(*s)) for s in shapes], **options),
            call(*[r.complex(*s) for s in shapes], **options)]


def products(*shapes, integers=True, **options):
    def enter(*names):
        for name in names:
            def draw(r):
                calls = both(r, *shapes, **options)
                if integers:
                    calls.append(call(*[r.integers(-3, 4, *s) for s in shapes], **options))
                return calls
            family[name] = draw
    return enter


products((3,), (4,))("outer", "ger")
products((2, 3), (4, 3))("inner")
products((3,), (3,))("vdot")
products((2, 3), (4, 5))("kron")
products((2, 3), (3, 4))("linalg.matmul")
products((2, 1, 3), (4, 3))("linalg.vecdot")
products((2, 3), (2, 3))("cross")
products((2, 1, 3), (1, 4, 3))("linalg.cross")
products((3, 4))("trace")
products((2,), (2, 3), (3,), beta=2, alpha=3)("addmv")
products((2, 3), (2,), (3,), beta=2, alpha=3)("addr")
products((2, 4), (5, 2, 3), (5, 3, 4), beta=2, alpha=3)("addbmm")
products((5, 2, 4), (5, 2, 3), (5, 3, 4), beta=2, alpha=3)("baddbmm")
products((2, 3), (3, 4), (4, 2))("chain_matmul")


@family("kron")
def _(r):
    return both(r, (2, 3), (4, 5)) + both(r, (3,), (2, 2)) + [call(r.real(), r.real(2))]


@family("inner")
def _(r):
    return both(r, (2, 3), (4, 3)) + both(r, (), (4, 3)) + both(r, (3,), (3,))


@family("cross")
def _(r):
    return both(r, (2, 3), (2, 3)) + both(r, (3, 2), (3, 2), dim=0) + both(r, (3, 3), (3, 1))


@family("addmv")
def _(r):
    return both(r, (2,), (2, 3), (3,), beta=0.5, alpha=2.0) + both(r, (), (2, 3), (3,)) + [
        call(np.array([np.nan, 1.0]), r.real(2, 3), r.real(3), beta=0).but(smooth=False)]


@family("tensordot")
def _(r):
    return both(r, (2, 3, 4), (3, 4, 5), dims=2) + both(
        r, (2, 3, 4), (4, 2, 5), dims=([0, 2], [1, 0])) + both(r, (2,), (3,), dims=0) + [
        call(r.real(2, 3), r.real(1, 2), dims=([1], [0]))]


@family("linalg.multi_dot")
def _(r):
    return [call([r.real(2, 3), r.real(3, 4), r.real(4, 2)]),
            call([r.real(3), r.real(3, 4), r.real(4)]),
            call([r.complex(10, 2), r.complex(2, 20), r.complex(20, 3), r.complex(3)])]


def equation(text, *shapes):
    return lambda r: [call(text, *[r.rng.randn(*s) for s in shapes]),
                      call(text, *[r.complex(*s) for s in shapes])]


EQUATIONS = [
    ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("ii", (3, 3)), ("ii->i", (3, 3)),
    ("ij->ji", (2, 3)), ("ba", (2, 3)), ("i,j->ij", (2,), (3,)), ("i,i->", (3,), (3,)),
    ("bij,bjk->bik", (2, 2, 3), (2, 3, 4)), ("...ij,...jk->...ik", (5, 1, 2, 3), (4, 3, 2)),
    ("bn,anm,bm->ba", (2, 3), (4, 3, 5), (2, 5)), ("i...->...", (2, 3, 4)), ("ij,ij->ij", (2, 3),
                                                                            (2, 3)),
    ("ij,kl->", (2, 3), (2, 2)), ("iij,jk->ki", (2, 2, 3), (3, 4)), ("ij->", (2, 3)),
    ("abc,cd,de,ef->abf", (2, 2, 3), (3, 2), (2, 3), (3, 2)), ("ij,ij->j", (2, 3), (1, 3)),
    ("i...j,j->...i", (2, 4, 3), (3,)), ("iijj->ij", (2, 2, 3, 3)), ("->", ()),
    ("...,...", (2, 3), (3,)), ("aBc,cD->aBD", (2, 3, 2), (2, 2)),
]


@family("einsum")
def _(r):
    calls = [c for e in EQUATIONS for c in equation(*e)(r)]
    calls.append(call(r.real(2, 3), [0, 1], r.real(3, 4), [1, 2], [2, 0]))
    calls.append(call(r.real(2, 3), [1, 0]))
    return calls


for _name in ("mm.dtype", "bmm.dtype"):
    family.untested[_name] = "there are kernels of it on accelerators alone"

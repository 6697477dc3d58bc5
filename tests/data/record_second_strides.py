"""Record how gradients of gradients lie in memory: `python record_second_strides.py`, with PyTorch
installed.

Each program is a function of tensors x, y and z; their shapes follow, and which of them are the
transposes of matrices by rows. What is recorded are the strides of the gradients by all of them,
and by the gradient of the result, of the sum of the first gradients.
"""
import json
from pathlib import Path

PROGRAMS = """
torch.matmul(x, y): 3,4 4,2 | 3,4T 4,2 | 3,4 4,2T | 2,3,4 4,2 | 3,4 2,4,5 | 2,3,4 2,4,5 | 2,3,4 4
torch.matmul(x, y): 4 2,4,5 | 2,3,4T 4,2 | 3,4 2,4,5T | 1,3,4 2,4,5 | 2,3,4 1,4,5 | 2,3,4T 2,4,5
torch.matmul(x, y): 2,2,3,4 4,5 | 2,2,3,4 2,4,5 | 4 4 | 4 4,2T | 3,4T 4
torch.tensordot(x, y, 2): 3,4 3,4 | 2,3,4 3,4,2 | 3,4T 3,4
torch.tensordot(x, y, ([1], [0])): 3,4 4,2 | 2,4,3T 4,2
torch.linalg.matrix_exp(x): 3,3 | 3,3T | 2,3,3 | 2,3,3T
torch.linalg.det(x): 3,3 | 3,3T | 2,3,3
torch.linalg.pinv(x): 3,4 | 4,3 | 3,3T | 2,3,4
torch.linalg.lstsq(x, y)[0]: 4,3 4,2 | 4,3T 4,2 | 2,4,3 2,4,2 | 3,4 3,2
torch.linalg.solve(x, y): 3,3 3,2 | 3,3T 3,2 | 2,3,3 2,3,2
torch.linalg.lu_solve(*torch.linalg.lu_factor(x), y): 3,3 3,2 | 2,3,3 2,3,2
torch.linalg.solve_triangular(x, y, upper=True): 3,3 3,2 | 3,3T 3,2 | 2,3,3 2,3,2
torch.triangular_solve(y, x)[0]: 3,3 3,2 | 3,3T 3,2
torch.cholesky_solve(y, x): 3,3 3,2 | 3,3T 3,2 | 2,3,3 2,3,2
torch.linalg.eigh(x @ x.mT)[0]: 3,3 | 3,3T | 2,3,3
torch.ormqr(x, y, z): 3,3 3 3,2 | 3,3T 3 3,2 | 2,3,3 2,3 2,3,2
torch.linalg.householder_product(x, y): 4,3 3 | 4,3T 3 | 2,4,3 2,3
torch.fft.rfft(x).abs(): 5 | 3,4 | 3,4T | 2,3,5
torch.fft.irfft(torch.complex(x, y)): 3,4 3,4 | 3,4T 3,4T
torch.fft.hfft(torch.complex(x, y)): 3,4 3,4 | 3,4T 3,4T
torch.fft.fft(torch.complex(x, y)).abs(): 3,4 3,4 | 3,4T 3,4T
""".strip().splitlines()


def layouts():
    """Of each program its name, the function and the shapes, `T` for a transpose."""
    for line in PROGRAMS:
        body, _, cases = line.rpartition(": ")
        for case in cases.split(" | "):
            shapes = [([int(n) for n in s.rstrip("T").split(",")], s[-1] == "T")
                      for s in case.split()]
            yield f"{body}: {case}", body, shapes


def strides(torch, body, shapes):
    """Those of the second gradients; None where there is none."""
    torch.manual_seed(0)
    given = []
    for shape, turned in shapes:
        if turned:
            value = torch.rand(*shape[:-2], shape[-1], shape[-2], dtype=torch.float64).mT
        else:
            value = torch.rand(shape, dtype=torch.float64)
        given.append(value.detach().requires_grad_())
    result = eval(body, {"torch": torch, **dict(zip("xyz", given))})
    by = torch.rand(result.shape, dtype=torch.float64, requires_grad=True)
    first = torch.autograd.grad(result, given, by, create_graph=True)
    total = sum([(g * g).sum() for g in first])
    second = torch.autograd.grad(total, [*given, by], allow_unused=True)
    return [None if g is None else list(g.stride()) for g in second]


if __name__ == "__main__":
    import torch

    found = {name: strides(torch, *rest) for name, *rest in layouts()}
    text = json.dumps(found, indent=0)
    Path(__file__).with_name("second_strides.json").write_text(text + "\n")
    print(len(found))

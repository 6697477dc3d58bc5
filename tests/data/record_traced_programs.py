"""Record what `make_fx` writes of small programs: `python record_traced_programs.py`, with PyTorch
installed.

Each line is a function of a 2 by 3 matrix x, which requires gradients, and a vector v of three
numbers. What is recorded is the code of the graph.
"""
import json
from pathlib import Path

PROGRAMS = """
x.t().reshape(-1)[1:4].unsqueeze(0).expand(2, 3)
x.detach().clone().add_(1).mul_(2)
x.exp() * x
torch.autograd.grad((x.sin() * x).sum(), x)[0]
torch.autograd.grad(x.exp().sum(), x)[0]
torch.autograd.grad(torch.tanh(x).sum(), x)[0]
torch.autograd.grad(torch.sigmoid(x @ v).sum(), x)[0]
torch.autograd.grad((x @ v).pow(3).sum(), x)[0]
torch.autograd.grad(torch.relu(x).sum(), x)[0]
torch.autograd.grad((x / v).sum(), x)[0]
torch.autograd.grad(x.mean(), x)[0]
torch.autograd.grad(x.t().mm(x).sum(), x)[0]
torch.autograd.grad(x.softmax(1).select(1, 0).sum(), x)[0]
torch.autograd.grad(torch.nn.functional.linear(x, x).sum(), x)[0]
torch.func.grad(lambda v: v.cos().sum())(v)
torch.func.vjp(torch.exp, v)[1](v)[0]
torch.cat([x, x]).split(2)[1]
torch.where(x > 0, x, v)
x.var(1, keepdim=True)
x.max(1).values
torch.nn.functional.gelu(x)
torch.nn.functional.layer_norm(x, (3,))
x - x.detach().mul(2) + torch.autograd.grad(x.relu().sum(), x)[0]
torch.autograd.grad(torch.autograd.grad((x ** 3).sum(), x, create_graph=True)[0].sum(), x)[0]
torch.autograd.grad((x.softmax(-1) @ x.t()).std(), x)[0]
torch.autograd.grad(torch.nn.functional.cross_entropy(x, torch.arange(2)), x)[0]
torch.nn.functional.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None])
x[None].transpose(-1, -2).expand(2, 3, 2).reshape(6, 2) @ x
torch.autograd.grad(torch.linalg.vector_norm(x, dim=1).sum(), x)[0]
torch.func.vmap(torch.func.grad(lambda row: row.sin().sum()))(x.detach())
torch.func.functionalize(lambda y: y.clone().view(-1).add_(1))(v)
torch.linalg.inv(x @ x.t() + torch.eye(2)), torch.linalg.slogdet(x @ x.t())
torch.isclose(x, v)
torch.add(x.detach(), v, out=torch.empty(2, 3))
torch._foreach_add([x.detach(), v], 1)
""".strip().splitlines()


def code(torch, make_fx, program):
    """That of the graph of a program."""
    x = (torch.arange(6.0).reshape(2, 3) / 4).requires_grad_()
    v = torch.tensor([0.5, -1.0, 2.0])
    function = eval(f"lambda x, v: ({program})", {"torch": torch})
    return make_fx(function)(x, v).code


if __name__ == "__main__":
    import torch
    from torch.fx.experimental.proxy_tensor import make_fx

    found = {program: code(torch, make_fx, program) for program in PROGRAMS}
    text = json.dumps(found, indent=0)
    Path(__file__).with_name("traced_programs.json").write_text(text + "\n")
    print(len(found))

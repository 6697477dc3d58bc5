"""Errors of the backward pass name the lines that are at fault, without anomaly mode."""
import inspect
import subprocess
import sys
import textwrap

import pytest

import flambeau as torch
from flambeau import nn


def here(back=0):
    """The line of the caller, `back` lines further up."""
    return f'File "{__file__}", line {inspect.currentframe().f_back.f_lineno - back}, in '


def error_of(function, *args, **kwargs):
    with pytest.raises(RuntimeError) as caught:
        function(*args, **kwargs)
    return str(caught.value)


WRITES = {
    "in_place_op": lambda y: y.add_(1),
    "out_argument": lambda y: torch.add(torch.ones(3), 1, out=y),
    "indexing": lambda y: y.__setitem__(0, 5.0),
    "fill": lambda y: y.fill_(2),
    "copy": lambda y: y.copy_(torch.ones(3)),
    "random": lambda y: y.normal_(),
    "through_a_view": lambda y: y[:2].mul_(3),
    "counted_by_hand": lambda y: torch.autograd.graph.increment_version(y),
    "foreach": lambda y: torch._foreach_add_([y], 1),
    "scatter": lambda y: y.index_fill_(0, torch.tensor([0]), 1.0),
    "by_the_package": lambda y: nn.init.ones_(y),
}


@pytest.mark.parametrize("write", WRITES)
def test_the_op_that_saved_and_the_line_that_wrote(write):
    w = torch.ones(3, requires_grad=True)
    y = torch.full((3,), 2.0)
    loss = w * y
    saved = here(1)
    for _ in range(2):
        WRITES[write](y)
    error = error_of(loss.sum().backward)
    assert error.startswith(
        "one of the variables needed for gradient computation has been modified by an inplace "
        "operation: [torch.FloatTensor [3]] is at version 2; expected version 0 instead.")
    assert "MulBackward0, made here, saved it" in error
    assert saved in error
    line = inspect.getsourcelines(WRITES[write])[1]
    last = error.split("written to 2 times since, the last time here:")[1]
    assert f'File "{__file__}", line {line}, in <lambda>' in last
    assert inspect.getsource(WRITES[write]).strip() in last


def test_the_write_of_an_optimiser():
    for make in (torch.optim.SGD, torch.optim.Adam, torch.optim.Rprop):
        net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3))
        optimizer = make(net.parameters(), lr=0.1)
        loss = net(torch.ones(2, 3)).sum()
        made = here(1)
        loss.backward(retain_graph=True)
        optimizer.step()
        written = here(1)
        error = error_of(loss.backward)
        assert "AddmmBackward0, made here" in error
        assert error.index(made) < error.index(written)


def test_a_written_result_names_its_origin():
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    y.detach().zero_()
    error = error_of(y.sum().backward)
    assert "[torch.FloatTensor [2]], which is output 0 of Exp, is at version 1" in error
    assert here(3) in error


def test_the_node_its_line_and_the_pass_that_freed_it():
    x = torch.ones(2, requires_grad=True)
    y = x.sin()
    made = here(1)
    torch.autograd.grad(y.sum(), x)
    freed = here(1)
    for again in (y.sum().backward, lambda: y.grad_fn._saved_self, lambda: y.grad_fn(y)):
        error = error_of(again)
        assert error.startswith("Trying to backward through the graph a second time (or directly "
                                "access saved tensors after they have already been freed).")
        assert "The node that was freed is SinBackward0, made here:" in error
        assert error.index(made) < error.index("freed by the backward pass called here:")
        assert freed in error.split("freed by the backward pass called here:")[1]


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        return 2 * grad * ctx.saved_tensors[0]


def test_functions_of_the_user():
    x = torch.ones(2, requires_grad=True)
    y = Square.apply(x)
    made = here(1)
    y.sum().backward(retain_graph=True)
    with torch.no_grad():
        x += 1
    written = here(1)
    error = error_of(y.sum().backward)
    assert "SquareBackward, made here" in error
    assert error.index(made) < error.index(written)
    z = Square.apply(x)
    z.sum().backward()
    freed = here(1)
    assert freed in error_of(z.sum().backward)


def test_a_line_inside_a_module_of_the_user():
    class Net(nn.Module):
        def forward(self, x):
            self.made = here(-1)
            return nn.functional.relu(x).exp()
    net, x = Net(), torch.ones(2, requires_grad=True)
    y = net(x)
    y.sum().backward()
    assert net.made in error_of(y.sum().backward)


def test_a_graph_of_a_pass_was_made_by_that_pass():
    x = torch.ones(2, requires_grad=True)
    y = (x ** 3).sum()
    g, = torch.autograd.grad(y, x, create_graph=True)
    made = here(1)
    g.sum().backward()
    assert made in error_of(g.sum().backward)


@pytest.mark.parametrize("fast", ["0", "1"])
def test_the_same_with_and_without_the_extension(fast, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent("""\
        import flambeau as torch
        x = torch.ones(2, requires_grad=True)
        def product(y):
            return (x *
                    y)
        y = torch.ones(2)
        z = product(y)
        y.mul_(
            2)
        try:
            z.sum().backward()
        except RuntimeError as error:
            print(error)
        z = product(y)
        z.sum().backward()
        try:
            z.sum().backward()
        except RuntimeError as error:
            print(error)
        """))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True,
                          env={"FLAMBEAU_FAST": fast, "PYTHONPATH": ":".join(sys.path)})
    lines = [(int(line.split(", ")[1][5:]), line.split(" in ")[1])
             for line in done.stdout.splitlines() if line.startswith(f'  File "{script}"')]
    assert lines == [(4, "product"), (8, "<module>"), (4, "product"), (15, "<module>")]

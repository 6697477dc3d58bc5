"""Programs with the modules of the original."""
import flambeau as torch
from flambeau import nn
from flambeau.export import export, unflatten


def test_unflattened_programs_have_the_modules_of_the_original():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2), nn.ReLU())

        def forward(self, x):
            return self.b(self.a(x)) + self.a.weight

    model = Model()
    found = unflatten(export(model, (torch.ones(2, 2),)))
    assert repr(found) == """UnflattenedModule(
  (a): InterpreterModule()
  (b): InterpreterModule(
    (0): InterpreterModule()
    (1): InterpreterModule()
  )
)"""
    x = torch.rand(2, 2)
    torch.testing.assert_close(found(x), model(x))
    assert list(found.state_dict()) == list(model.state_dict())
    assert [str(n) for n in found.graph.nodes] == ["x", "a_weight", "a", "b", "add", "output"]


def test_unflattened_programs_print_what_is_asked_for():
    """Recorded from PyTorch."""
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(2))

        def forward(self, x):
            return x * self.w

    program = unflatten(export(Scaled(), (torch.ones(3, 2),)))
    lines = program.print_readable(False, include_stride=True).splitlines()
    assert lines[:4] == ["class UnflattenedModule(torch.nn.Module):",
                         '    def forward(self, x: "f32[3, 2][2, 1]"):',
                         "        # No stacktrace found for following nodes",
                         '        w: "f32[2][1]" = self.w']
    lines = program.print_readable(False, colored=True).splitlines()
    assert lines[2:4] == [
        "        \x1b[2m# No stacktrace found for following nodes\x1b[0m",
        '        w: "\x1b[31mf32\x1b[0m\x1b[34m[2]\x1b[0m\x1b[2m\x1b[34m\x1b[0m'
        '\x1b[2m\x1b[32m\x1b[0m" = self.w']
    assert lines[4] == "" and lines[5].startswith("        \x1b[2m# File: ")
    assert lines[6].endswith("torch.ops.aten.mul.Tensor(x, w);  \x1b[2mx = w = None\x1b[0m")

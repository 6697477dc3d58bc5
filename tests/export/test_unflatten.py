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

import pytest

import flambeau as torch
from flambeau import functorch


def test_modules_as_functions():
    model, x = torch.nn.Linear(3, 2), torch.ones(4, 3)
    f, params = functorch.make_functional(model)
    assert torch.equal(f(params, x), model(x)) and all(p.requires_grad for p in params)
    assert len(functorch.make_functional(model, disable_autograd_tracking=True)[1]) == 2
    norm = torch.nn.BatchNorm1d(3).eval()
    with pytest.raises(ValueError, match="has buffers"):
        functorch.make_functional(norm)
    g, params, buffers = functorch.make_functional_with_buffers(norm)
    assert torch.equal(g(params, buffers, x), norm(x))


def test_ensemble():
    models, x = [torch.nn.Linear(3, 2) for _ in range(5)], torch.ones(4, 3)
    f, params, buffers = functorch.combine_state_for_ensemble(models)
    assert repr(f).startswith("FunctionalModuleWithBuffers(\n  (stateless_model): Linear(")
    whole = functorch.vmap(f, (0, 0, None))(params, buffers, x)
    torch.testing.assert_close(whole, torch.stack([m(x) for m in models]))

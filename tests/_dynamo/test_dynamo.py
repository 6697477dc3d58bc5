"""Names of PyTorch's tracer at the top of its package."""
import flambeau as torch
from flambeau import _dynamo
from flambeau._dynamo.decorators import mark_static
from flambeau._dynamo.eval_frame import optimize


def test_parts_are_names_of_the_package():
    assert _dynamo.mark_static is mark_static and _dynamo.optimize is optimize
    assert _dynamo.OptimizedModule is type(torch.compile(torch.nn.ReLU(), backend="eager"))
    assert _dynamo.config.cache_size_limit == 8 and not _dynamo.is_compiling()


def test_forgetting_leaves_functions_alone():
    compiled = torch.compile(lambda x: x + 1, backend="eager")
    assert compiled(torch.ones(1)) == 2
    for forget in (_dynamo.reset, _dynamo.reset_code_caches):
        assert forget() is None
        assert compiled(torch.ones(1)) == 2


def test_backends_have_names():
    assert {"eager", "aot_eager"} <= set(_dynamo.list_backends(exclude_tags=()))
    assert callable(_dynamo.lookup_backend("eager"))

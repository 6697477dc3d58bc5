"""Properties and plain methods cost nothing until somebody overrides functions."""
import flambeau as torch
from flambeau.overrides import TorchFunctionMode
from flambeau.transforms import watched_members


class Seen(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.functions = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.functions.append(func)
        return func(*args, **(kwargs or {}))


def test_a_mode_sees_properties():
    x = torch.ones(2, requires_grad=True)
    before = torch.Tensor.shape
    with Seen() as seen:
        _ = x.shape, x.grad
        x.grad = torch.ones(2)
    assert torch.Tensor.shape.__get__ in seen.functions
    assert torch.Tensor.grad.__set__ in seen.functions
    assert torch.Tensor.__dict__["shape"] is before         # and nothing is left behind


def test_classes_made_inside_a_mode_see_properties():
    asked = []
    with Seen():
        class Asking(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                asked.append(func)
                return super().__torch_function__(func, types, args, kwargs or {})
    _ = torch.ones(2).as_subclass(Asking).shape
    assert torch.Tensor.shape.__get__ in asked


def test_a_subclass_sees_properties_for_good():
    asked = []

    class Asking(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            asked.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    x = torch.ones(2).as_subclass(Asking)
    _ = x.shape
    assert torch.Tensor.shape.__get__ in asked
    asked.clear()
    _ = torch.ones(2).shape
    assert not asked


def test_a_mode_that_could_not_be_entered_leaves_nothing_to_the_next():
    watched_members.watch()                 # interrupted here
    with Seen(), torch.no_grad():
        assert not torch.is_grad_enabled()
    with torch.no_grad():
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()
    assert not isinstance(vars(torch.Tensor)["shape"], watched_members._Watched)

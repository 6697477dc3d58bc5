"""Classes that stand for TorchScript classes."""
import pytest

from flambeau._library import fake_class_registry as registry

FULL = "__torch__.torch.classes.mirror.Queue"


class Queue:
    @classmethod
    def __obj_unflatten__(cls, flat):
        return cls()


def test_classes_are_found_while_they_are_registered():
    assert not registry.has_fake_class(FULL) and registry.find_fake_class(FULL) is None
    registry._registered[FULL] = Queue
    try:
        assert registry.has_fake_class(FULL) and registry.find_fake_class(FULL) is Queue
    finally:
        assert registry.deregister_fake_class("mirror::Queue") is Queue
    assert not registry.has_fake_class(FULL)


def test_decorators():
    @registry.register_fake_class("mirror::Other")
    class Other(Queue):
        pass
    assert registry.find_fake_class("__torch__.torch.classes.mirror.Other") is Other
    assert registry.register_fake_class("mirror::Queue", Queue) is Queue
    registry.deregister_fake_class("mirror::Other"), registry.deregister_fake_class("mirror::Queue")


@pytest.mark.parametrize(("name", "cls", "message"), [
    ("Queue", Queue, "to be of the form"),
    ("mirror::Bare", object, "does not define a classmethod __obj_unflatten__"),
])
def test_what_is_refused(name, cls, message):
    with pytest.raises((RuntimeError, ValueError), match=message):
        registry.register_fake_class(name, cls)

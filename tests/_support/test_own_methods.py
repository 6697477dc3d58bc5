"""Methods that subclasses seem to define themselves."""

import pickle

from flambeau._support import own_methods
from flambeau.distributions import Normal


def test_public_subclasses_of_this_library_get_methods_of_their_own():
    def make(name, base, **members):
        return type(name, (base,), {"__module__": "flambeau.somewhere", **members})

    @own_methods.define_in_subclasses("run")
    class Base:
        def run(self, x=1):
            """Run."""
            return type(self).__name__, x

    public, private = make("Public", Base), make("_Private", Base)
    outside = type("Outside", (Base,), {"__module__": "program"})
    other = make("Other", Base, run=lambda self: "other")
    assert "run" in vars(public) and public.run.__qualname__ == "Public.run"
    assert public().run() == ("Public", 1) and public.run.__doc__ == "Run."
    assert all("run" not in vars(cls) for cls in (private, outside))
    assert other().run() == "other"


def test_inherited_methods_become_ones_of_the_class():
    class Base:
        def run(self):
            return "ran"

    @own_methods.copy_inherited("run")
    class Child(Base):
        pass
    assert Child.run is not Base.run and Child().run() == "ran"
    assert Child.run.__qualname__ == f"{Child.__qualname__}.run"


def test_methods_have_the_names_that_they_are_told():
    class Part:
        @own_methods.shown_as("Whole.other")
        def one(self):
            pass

        def two(self):
            pass
    assert Part.one.__qualname__ == "Whole.other"
    own_methods.of_class("Whole", Part)
    assert (Part.one.__qualname__, Part.two.__qualname__) == ("Whole.one", "Whole.two")


def test_distributions_pickle_with_methods_of_their_own():
    again = pickle.loads(pickle.dumps(Normal(0.0, 2.0)))
    assert again.scale.item() == 2.0 and Normal.sample.__qualname__ == "Normal.sample"


def test_docstrings_of_the_base_are_found():
    import inspect

    import flambeau
    method = flambeau.distributions.HalfCauchy.expand
    assert method.__module__ == flambeau.distributions.HalfCauchy.__module__
    assert inspect.getdoc(method) and inspect.getdoc(flambeau.nn.SiLU.forward)


def test_a_second_name_of_a_method_is_a_method_of_its_own():
    @own_methods.define_also("back", of="there")
    class Way:
        def there(self, n=1):
            return n

    assert Way().back(3) == 3 and Way().back() == 1
    assert Way.back.__qualname__.endswith("Way.back") and Way.there.__name__ == "there"


def test_all_public_methods_of_a_base_are_those_of_its_classes():
    @own_methods.define_in_subclasses(further=True)
    @own_methods.define_in_subclasses("_hidden")
    class Base:
        def __init__(self, x):
            self.x = x

        @classmethod
        def make(cls, x):
            return cls(x)

        def _hidden(self):
            return self.x

    public = type("Public", (Base,), {"__module__": "flambeau.somewhere"})
    child = type("Child", (public,), {"__module__": "flambeau.somewhere"})
    assert type(child.make(1)) is child and child.make(2)._hidden() == 2
    assert [child.make.__func__.__qualname__, child.__init__.__qualname__,
            child._hidden.__qualname__] == ["Child.make", "Child.__init__", "Public._hidden"]

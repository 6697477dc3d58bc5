"""Functions that answer later."""
from flambeau.distributed import rpc


def test_marks():
    def work(a, b=2):
        """Works."""
        return a + b
    found = rpc.functions.async_execution(work)
    assert found(1, b=3) == 4 and found._wrapped_async_rpc_function is work
    assert (found.__name__, found.__doc__) == ("work", "Works.")


def test_in_classes():
    class Own:
        @staticmethod
        @rpc.functions.async_execution
        def static(a):
            return a

        @classmethod
        @rpc.functions.async_execution
        def of_class(cls, a):
            return cls, a

        @rpc.functions.async_execution
        def method(self, a):
            return self, a
    own = Own()
    assert Own.static(1) == 1 and Own.of_class(2) == (Own, 2) and own.method(3) == (own, 3)
    for function in (Own.static, Own.of_class, own.method):
        assert hasattr(function, "_wrapped_async_rpc_function")

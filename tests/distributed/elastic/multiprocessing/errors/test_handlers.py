"""Which handler writes errors."""
from flambeau.distributed.elastic.multiprocessing.errors import (
    ErrorHandler,
    get_error_handler,
)


def test_each_gets_its_own():
    first, second = get_error_handler(), get_error_handler()
    assert type(first) is type(second) is ErrorHandler and first is not second

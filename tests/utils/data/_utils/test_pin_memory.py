"""Page-locked memory."""
import queue
import threading
from collections import namedtuple

import flambeau
from flambeau._utils import ExceptionWrapper
from flambeau.utils.data._utils import pin_memory as module

Pair = namedtuple("Pair", "x y")


class Pinnable:
    pinned = False

    def pin_memory(self):
        self.pinned = True
        return self


class Broken:
    def pin_memory(self):
        raise ValueError("no memory")


def test_structures_are_kept():
    thing, text = Pinnable(), "text"
    found = module.pin_memory({"a": Pair(thing, [text]), "b": (flambeau.ones(2), 3)})
    assert type(found["a"]) is Pair and found["a"].x.pinned and found["a"].y == [text]
    assert found["b"][0].tolist() == [1.0, 1.0] and found["b"][1] == 3


def test_the_loop_moves_batches_and_errors(monkeypatch):
    monkeypatch.setattr(module, "MP_STATUS_CHECK_INTERVAL", 0.01)
    given, done, end = queue.Queue(), queue.Queue(), threading.Event()
    failed = ExceptionWrapper((ValueError, ValueError("x"), None), where="there")
    for number, value in enumerate([Pinnable(), Broken(), failed]):
        given.put((number, value))
    thread = threading.Thread(target=module._pin_memory_loop, args=(given, done, 0, end, None))
    thread.start()
    answers = [done.get(timeout=10) for _ in range(3)]
    end.set()
    thread.join(10)
    assert not thread.is_alive() and [number for number, _ in answers] == [0, 1, 2]
    assert answers[0][1].pinned and answers[2][1] is failed
    assert isinstance(answers[1][1], ExceptionWrapper) and answers[1][1].exc_type is ValueError

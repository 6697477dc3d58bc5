"""Tensors as messages over TCP: two groups in one process."""
from __future__ import annotations

import threading
from datetime import timedelta

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed._c10d.transport import messages


@pytest.fixture
def pair():
    """The ends of a group of two."""
    store, made = dist.HashStore(), [None, None]

    def connect(rank):
        made[rank] = dist.ProcessGroupGloo(store, rank, 2, timedelta(seconds=10))
    other = threading.Thread(target=connect, args=(1,))
    other.start()
    connect(0)
    other.join()
    yield made
    for group in made:
        group.shutdown()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.bool, torch.complex64,
                                   torch.int8, torch.uint16])
def test_bytes_and_back(dtype):
    x = torch.tensor([[0, 1], [1, 1]]).to(dtype)
    data = bytearray(messages.as_bytes(x.t()))
    assert len(data) == 4 * x.element_size()
    back = messages.of_bytes(data, x)
    assert back.dtype is dtype and torch.equal(back.view(2, 2).to(torch.complex64),
                                               x.t().to(torch.complex64))
    assert len(messages.as_bytes(x[:0])) == 0 and messages.of_bytes(bytearray(), x).shape == (0,)


@pytest.mark.parametrize("count", [0, 3, 100_000])
def test_tensors_of_all_sizes(pair, count):
    one, two = pair
    x, y = torch.arange(float(count)), torch.zeros(count)
    sent, taken = one.send([x], 1, 3), two.recv([y], 0, 3)
    assert taken.wait() and sent.wait() and torch.equal(x, y)
    assert taken.source_rank() == 0


def test_a_small_message_may_be_written_over_at_once(pair):
    one, two = pair
    x, y = torch.ones(2), torch.zeros(2)
    one.send([x], 1, 0)
    x.fill_(7)
    assert two.recv_anysource([y], 0).wait() and y.tolist() == [1, 1]


def test_tags_and_order(pair):
    one, two = pair
    for value, tag in ((1.0, 0), (2.0, 5), (3.0, 0)):
        one.send([torch.tensor([value])], 1, tag)
    found = [torch.zeros(1) for _ in range(3)]
    works = [two.recv([t], 0, tag) for t, tag in zip(found, (0, 0, 5))]
    for work in works:
        work.wait()
    assert [t.item() for t in found] == [1, 3, 2]


@pytest.mark.parametrize("count", [3, 100_000])
def test_both_learn_what_does_not_fit(pair, count):
    one, two = pair
    sent, taken = one.send([torch.ones(count)], 1, 0), two.recv([torch.zeros(2)], 0, 0)
    words = rf"rank 0.* sends torch.float32 \[{count}\], but rank 1.* receives torch.float32 \[2\]"
    with pytest.raises(RuntimeError, match=words):
        taken.wait()
    with pytest.raises(RuntimeError, match=words):
        sent.wait()
        for _ in range(200):                    # of a small one it learns at its next call
            threading.Event().wait(0.01)
            one.check_notices()


def test_another_shape_of_as_many_fits(pair):
    one, two = pair
    y = torch.zeros(2, 3)
    one.send([torch.arange(6.0)], 1, 0)
    two.recv([y], 0, 0).wait()
    assert y.tolist() == [[0, 1, 2], [3, 4, 5]]

"""Large graphs, many threads, interrupted passes, long runs: what autograd promises about them."""
import _thread
import gc
import resource
import sys
import threading
import time
import tracemalloc
import weakref

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.autograd import Function, grad
from flambeau.utils.checkpoint import checkpoint

LONG = 1_000_000


@pytest.fixture
def no_gc():
    """What is freed here is freed by counting references."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def chain(x, n):
    y = x
    for _ in range(n):
        y = y + 1
    return y


# ---- a million nodes ----------------------------------------------------------------------------


def test_a_million_nodes_forward_backward_and_freed(no_gc):
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(250)                  # nothing of it recurses
    try:
        x = torch.ones(1, requires_grad=True)
        y = chain(x, LONG)
        oldest = weakref.ref(y.grad_fn)
        y.backward()
        assert x.grad.item() == 1 and y.item() == LONG + 1
        del y
        assert oldest() is None                 # and all the others with it
    finally:
        sys.setrecursionlimit(limit)


def test_a_long_graph_with_saved_values_several_inputs_and_views(no_gc):
    x = torch.ones(2, requires_grad=True)
    w = torch.full((2,), 0.9999, requires_grad=True)
    y = x
    for _ in range(20_000):
        y = (y * w).view(2)
    nodes = weakref.ref(y.grad_fn)
    g, = grad(y.sum(), w, retain_graph=True)
    assert torch.allclose(g, 20_000 * torch.full((2,), 0.9999) ** 19_999, rtol=1e-2)
    del y, g
    assert nodes() is None


def test_a_long_graph_of_functions_of_the_user(no_gc):
    class Step(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x + 1

        @staticmethod
        def backward(ctx, g):
            return g
    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(10_000):
        y = Step.apply(y)
    node = weakref.ref(y.grad_fn)
    y.backward()
    assert x.grad.item() == 1
    del y
    assert node() is None


def test_a_long_graph_written_in_place(no_gc):
    x = torch.ones(1, requires_grad=True)
    base = torch.zeros(2)
    part = base[:1]
    part += x
    for _ in range(5_000):
        part.mul_(1.0)
    node = weakref.ref(base.grad_fn)
    base.sum().backward()
    assert x.grad.item() == 1
    del part, base
    assert node() is None


def test_deep_nesting_of_passes():
    class Nested(Function):
        @staticmethod
        def forward(ctx, x, depth):
            ctx.depth = depth
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            if ctx.depth:
                with torch.enable_grad():
                    inner = torch.ones(1, requires_grad=True)
                    Nested.apply(inner, ctx.depth - 1).backward()
                    assert inner.grad.item() == 1
            return g, None
    x = torch.ones(1, requires_grad=True)
    Nested.apply(x, 300).backward()
    assert x.grad.item() == 1


# ---- threads ------------------------------------------------------------------------------------


def run_threads(n, work):
    errors = []
    start = threading.Barrier(n)

    def call(i):
        try:
            start.wait()
            work(i)
        except BaseException as error:
            errors.append(error)
    threads = [threading.Thread(target=call, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors[0]


def test_64_threads_on_shared_leaves():
    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        leaves = [torch.ones(3, requires_grad=True) for _ in range(4)]
        seen = []
        leaves[0].register_hook(lambda g: seen.append(1))

        def work(i):
            for _ in range(5):
                loss = sum((leaf * (k + 1)).sum() for k, leaf in enumerate(leaves))
                loss.backward()
        run_threads(64, work)
    finally:
        sys.setswitchinterval(switch)
    for k, leaf in enumerate(leaves):
        assert leaf.grad.tolist() == [64 * 5 * (k + 1)] * 3
    assert len(seen) == 64 * 5


def test_64_threads_on_a_shared_graph_and_modes_of_their_own():
    x = torch.ones(3, requires_grad=True)
    shared = (x * 2).exp()

    def work(i):
        with torch.set_grad_enabled(i % 2 == 0):
            assert (shared * 2).requires_grad is (i % 2 == 0)
        g, = grad((shared * i).sum(), x, retain_graph=True)
        assert torch.equal(g, i * 2 * shared.detach())
    run_threads(64, work)
    assert x.grad is None


# ---- what goes wrong in the middle of a pass ----------------------------------------------------


def usable():
    """Is autograd as it was: modes, hooks, passes, sums?"""
    x = torch.ones(2, requires_grad=True)
    assert torch.is_grad_enabled()
    y = (x * x).sum()
    y.backward()
    g, = grad((x ** 3).sum(), x, create_graph=True)
    g.sum().backward()
    assert x.grad.tolist() == [8, 8]
    with pytest.raises(RuntimeError, match="during backward pass"):
        torch.autograd.Variable._execution_engine.queue_callback(lambda: None)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, MemoryError])
@pytest.mark.parametrize("where", ["hook", "node", "leaf", "after", "function", "unpack", "nested"])
def test_an_error_in_a_pass_leaves_all_usable(error, where):
    failing = [True]

    def fail(*args):
        if failing[0]:
            raise error("in the middle")

    class Failing(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            if where == "nested":
                with torch.enable_grad(), torch.no_grad():
                    inner = torch.ones(2, requires_grad=True)
                    with torch.enable_grad():
                        mid = inner * 2
                        mid.register_hook(fail)
                        mid.sum().backward()
            elif where == "function":
                fail()
            return g

    def unpack(value):
        if where == "unpack":
            fail()
        return value
    x = torch.ones(2, requires_grad=True)
    other = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
        h = x.exp()
        y = Failing.apply(h) * other
    if where == "hook":
        h.register_hook(fail)
    elif where == "node":
        h.grad_fn.register_prehook(fail)
    elif where == "leaf":
        x.register_hook(fail)
    elif where == "after":
        x.register_post_accumulate_grad_hook(fail)
    with pytest.raises(error, match="in the middle"):
        y.sum().backward(retain_graph=True)
    usable()
    failing[0] = False
    x.grad = other.grad = None
    y.sum().backward()                          # the same graph still gives all gradients
    assert torch.equal(x.grad, x.detach().exp())
    assert torch.equal(other.grad, x.detach().exp())
    usable()


def test_a_real_interrupt():
    x = torch.ones(1, requires_grad=True)
    y = chain(x, 100_000)
    timer = threading.Timer(0.02, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        while True:
            y.backward(retain_graph=True)
            time.sleep(0)
    timer.join()
    usable()
    x.grad = None
    y.backward()
    assert x.grad.item() == 1


# ---- long runs ----------------------------------------------------------------------------------


def left_behind(step, n):
    """Bytes and objects that `n` steps leave behind, without the garbage collector's help."""
    tracemalloc.start()
    gc.collect()
    gc.disable()
    try:
        for _ in range(200):                    # fills caches and the interpreter's free lists
            step()
        before, objects = tracemalloc.get_traced_memory()[0], len(gc.get_objects())
        for _ in range(n):
            step()
        return tracemalloc.get_traced_memory()[0] - before, len(gc.get_objects()) - objects
    finally:
        tracemalloc.stop()
        gc.enable()


def in_place(x=torch.ones(3, requires_grad=True)):
    y = x * 2
    y[:2].mul_(3)
    y.add_(1).sum().backward()
    x.grad.zero_()


def second_order(x=torch.ones(3, requires_grad=True)):
    g, = grad((x ** 3).sum(), x, create_graph=True)
    grad(g.sum(), x)


def hooked(x=torch.ones(3, requires_grad=True)):
    handle = x.register_hook(lambda g: g * 2)
    y = x.exp()
    y.retain_grad()
    y.grad_fn.register_hook(lambda i, o: None)
    y.sum().backward()
    handle.remove()
    x.grad = None


def forward_mode(x=torch.ones(3)):
    torch.func.jvp(torch.sin, (x,), (x,))


def recomputed(x=torch.ones(3, requires_grad=True)):
    checkpoint(torch.exp, x, use_reentrant=False).sum().backward()
    x.grad = None


def failing(x=torch.ones(3, requires_grad=True)):
    y = (x * x).sum()
    y.backward()
    x.grad = None
    try:
        y.backward()
    except RuntimeError:
        pass


STEPS = [in_place, second_order, hooked, forward_mode, recomputed, failing]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_steps_leave_nothing_behind(step):
    # the least of two: a table of the interpreter, older than the count, that is made anew in one
    # of them, counts as grown by all it has
    (grown, objects), (again, _) = left_behind(step, 500), left_behind(step, 500)
    assert min(grown, again) < 2_000            # four bytes a step: less than any object
    assert abs(objects) < 50


def test_10000_steps_of_training_do_not_grow():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 1), nn.Tanh())
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    x, target = torch.randn(8, 4), torch.randn(8, 1)

    def step():
        optimizer.zero_grad()
        nn.functional.mse_loss(net(x), target).backward()
        optimizer.step()
    for _ in range(500):
        step()
    gc.collect()
    gc.disable()
    try:
        before, peak = len(gc.get_objects()), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(10_000):
            step()
        assert abs(len(gc.get_objects()) - before) < 50
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 4_096       # KiB
    finally:
        gc.enable()

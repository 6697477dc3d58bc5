"""An interrupt at any instant leaves modes, levels, hooks and modules as they were."""

import os
import signal
import sys
import threading
import time

import pytest

import flambeau as torch
from flambeau import nn
from flambeau._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily
from flambeau._subclasses.functional_tensor import FunctionalTensorMode, disable_functional_mode
from flambeau._support.source_locations import native
from flambeau.amp import autocast_mode
from flambeau.autograd import forward_ad, function_calls, profiler
from flambeau.core import devices, modes
from flambeau.core.autograd import engine, graph, recording, saved_hooks
from flambeau.core.calling import overrides
from flambeau.func import (
    derivatives,
    functional_call,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    vjp,
    vmap,
)
from flambeau.fx import traceback as fx_traceback
from flambeau.fx.experimental import proxy_tensor
from flambeau.nn import attention
from flambeau.nn.attention import SDPBackend, sdpa_kernel
from flambeau.nn.modules import _hooks
from flambeau.nn.utils import parametrize
from flambeau.transforms import watched_members
from flambeau.utils import checkpoint as checkpoints
from flambeau.utils._python_dispatch import TorchDispatchMode
from flambeau.utils.checkpoint import checkpoint
from flambeau.utils.flop_counter import FlopCounterMode

needs_c = pytest.mark.skipif(native is None, reason="without the extension there are gaps")


def state(*owners):
    """All that an interrupt must leave as it was."""
    variables = (modes.levels, modes.function_modes, modes.autocast, modes.grad_mode,
                 modes.inference, engine.current_pass, saved_hooks.active, saved_hooks.set_aside,
                 saved_hooks.disabled, overrides.subclasses_enabled, overrides.suspended,
                 function_calls.observers, derivatives._depth, devices._default,
                 autocast_mode._state, attention._enabled, checkpoints._early_stop,
                 checkpoints._debug, checkpoints._group, proxy_tensor.CURRENT_DECOMPOSITION_TABLE,
                 proxy_tensor.ORIGINAL_ATEN)
    lists = (modes.interceptors, graph.saved_tensor_hooks, recording.node_watchers,
             forward_ad._entered,
             watched_members.watchers, parametrize._caching, profiler.recorders,
             _hooks._global_forward_hooks, _hooks._global_forward_pre_hooks)
    members = [{name: tuple(value.items()) if isinstance(value, dict) else value
                for name, value in vars(module).items()}
               for owner in owners for module in owner.modules()]
    return ([v.get() for v in variables], [tuple(each) for each in lists],
            vars(modes.anomaly).copy(), engine.accumulate_into, engine.accumulate_lock.locked(),
            fx_traceback.current_meta.copy(), fx_traceback.should_preserve_node_meta,
            fx_traceback.current_replay_node, members)


class Interrupt:
    """Raises KeyboardInterrupt at one instruction, or line, outside of this file."""

    def __init__(self, opcodes):
        self.opcodes = opcodes

    def run(self, step, at):
        """Interrupt `step` at the event of that number; how many there were."""
        self.left = at
        before = sys.gettrace()
        sys.settrace(self._call)
        try:
            step()
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        return at - self.left

    def _call(self, frame, event, argument):
        if frame.f_code.co_filename == __file__:
            return self._call
        frame.f_trace_opcodes = self.opcodes
        return self._event

    def _event(self, frame, event, argument):
        if event == ("opcode" if self.opcodes else "line"):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self._event


def check(step, *owners, opcodes=False, most=int(os.environ.get("INTERRUPTS", 60))):
    """Interrupt a step at up to `most` places."""
    step()
    before, interrupt = state(*owners), Interrupt(opcodes)
    interrupt.run(step, 10 ** 9)
    count = interrupt.run(step, 10 ** 9)
    for at in range(1, count + 1, max(1, count // most)):
        interrupt.run(step, at)
        found = state(*owners)
        assert found == before, at
    step()


x = torch.ones(3, requires_grad=True)


class Twice(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(a):
        return a * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return g * 2


class Log(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class Calls(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


@torch.no_grad()
def decorated():
    return x.exp()


def contexts():
    def inside(make):
        def step():
            with make():
                y = x.exp() * 2
                y.sum()
        return step
    for make in (torch.no_grad, torch.enable_grad, torch.inference_mode,
                 lambda: torch.set_grad_enabled(False), lambda: torch.inference_mode(False),
                 lambda: torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t),
                 lambda: torch.autograd.graph.disable_saved_tensors_hooks("no"),
                 lambda: torch.autograd.set_multithreading_enabled(False),
                 torch.autograd.forward_ad.dual_level, lambda: torch.autocast("cpu"),
                 lambda: torch.device("meta"), Log, Calls, torch._C.DisableTorchFunctionSubclass,
                 torch._C.DisableTorchFunction, nn.utils.parametrize.cached,
                 lambda: sdpa_kernel(SDPBackend.MATH), torch.autograd.graph.save_on_cpu):
        name = getattr(make, "__name__", "")
        yield pytest.param(inside(make), id=name if name != "<lambda>" else None)


@needs_c
@pytest.mark.parametrize("step", contexts())
def test_contexts(step):
    check(step, opcodes=True)


def tracing():
    def inside(outer, inner=torch.no_grad):
        def step():
            with outer(), inner():
                torch.ones(3).exp()
        return step
    for makes in ([FlopCounterMode], [FakeTensorMode], [FakeTensorMode, unset_fake_temporarily],
                  [FunctionalTensorMode], [FunctionalTensorMode, disable_functional_mode],
                  [fx_traceback.preserve_node_meta],
                  [lambda: fx_traceback.annotate({"a": 1})],
                  [lambda: proxy_tensor.decompose({})], [proxy_tensor.disable_proxy_modes_tracing],
                  [lambda: fx_traceback.set_current_replay_node(1)]):
        yield pytest.param(inside(*makes), id=" ".join(
            [getattr(make, "__name__", "") for make in makes]))


@needs_c
@pytest.mark.parametrize("step", tracing())
def test_tracing(step):
    check(step)


def transforms():
    def f(a):
        return (a.sin() * a).sum()
    yield lambda: grad(f)(x.detach())
    yield lambda: vmap(grad(f))(torch.ones(2, 3))
    yield lambda: jvp(f, (x.detach(),), (torch.ones(3),))
    yield lambda: vjp(f, x.detach())[1](torch.tensor(1.0))
    yield lambda: jacrev(torch.sin)(x.detach())
    yield lambda: jacfwd(torch.sin)(x.detach())
    yield lambda: hessian(f)(x.detach())
    yield lambda: torch.autograd.functional.hessian(f, x.detach())
    yield lambda: Twice.apply(x).sum().backward()
    yield lambda: vmap(Twice.apply)(torch.ones(2, 3, requires_grad=True)).sum().backward()
    yield lambda: grad(lambda a: Twice.apply(a).sum())(x.detach())
    yield lambda: vmap(lambda a: a + torch.randn(3), randomness="different")(torch.ones(2, 3))


@needs_c
@pytest.mark.parametrize("step", transforms())
def test_transforms(step):
    check(step)


def with_hooks():
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t * 1):
        y = (x.exp() * x).sum()
    y.backward()


def recomputed():
    checkpoint(lambda a: a.sin().exp(), x, use_reentrant=False).sum().backward()


def recomputed_reentrantly():
    checkpoint(lambda a: a.sin().exp(), x, use_reentrant=True).sum().backward()


def second_order():
    g, = torch.autograd.grad((x ** 3).sum(), x, create_graph=True)
    g.sum().backward()


def forward_mode():
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x.detach(), torch.ones(3))
        torch.autograd.forward_ad.unpack_dual(dual.exp())


@pytest.mark.filterwarnings("ignore:Anomaly")
def anomalous():
    with torch.autograd.detect_anomaly():
        x.exp().sum().backward()


def cast():
    with torch.autocast("cpu"):
        (torch.ones(2, 2) @ torch.ones(2, 2)).sum()
        with torch.autocast("cpu", enabled=False):
            x.exp()


def logged():
    with Log(), Calls():
        x.exp().sum().backward()


@needs_c
@pytest.mark.filterwarnings("ignore:Anomaly")
@pytest.mark.parametrize("step", [
    decorated, with_hooks, recomputed, recomputed_reentrantly, second_order, forward_mode,
    anomalous, cast, logged], ids=lambda step: step.__name__)
def test_steps(step):
    check(step)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.second = nn.Linear(3, 3)
        self.second.weight = self.first.weight
        self.norm = nn.BatchNorm1d(3)

    def forward(self, a):
        return self.norm(self.second(self.first(a)))


@needs_c
def test_functional_call():
    module = Tied()
    own = {name: value.detach() * 2 for name, value in module.named_parameters()}
    check(lambda: functional_call(module, own, (torch.ones(2, 3),)), module)


@needs_c
@pytest.mark.parametrize("make", [
    lambda p: torch.optim.SGD(p, 0.1, momentum=0.9), torch.optim.Adam, torch.optim.RMSprop,
    lambda p: torch.optim.AdamW(p, foreach=False), torch.optim.LBFGS])
def test_training(make):
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Dropout(0.1), nn.Linear(4, 2))
    batch, target = torch.randn(5, 3), torch.tensor([0, 1, 0, 1, 1])

    def closure():
        model.zero_grad()
        loss = nn.functional.cross_entropy(model(batch), target)
        loss.backward()
        return loss
    check(lambda: make(model.parameters()).step(closure), model)


@pytest.mark.skipif(native is None, reason="without C some instructions are not protected")
def test_signals():
    """The same with real signals, at random instants."""
    def step():
        with torch.no_grad():
            x.exp()
        with torch.inference_mode(), torch.autocast("cpu"):
            x.exp()
        with_hooks()
        recomputed()
        vmap(grad(lambda a: a.sin()))(torch.ones(3))
    step()
    before, interrupted = state(), 0
    main, done = threading.get_ident(), threading.Event()
    end = time.monotonic() + 1.0

    def interrupt():
        pause = 0.0
        while not done.wait(0.002 + pause % 0.003):
            pause += 0.00037
            signal.pthread_kill(main, signal.SIGUSR1)

    def handler(number, frame):
        if ready and not any(name in frame.f_code.co_filename for name in ("threading", "test_")):
            raise KeyboardInterrupt
    ready, old = False, signal.signal(signal.SIGUSR1, handler)
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        while time.monotonic() < end:
            try:
                ready = True
                step()
            except KeyboardInterrupt:
                interrupted += 1
            ready = False
            assert state() == before
    finally:
        done.set()
        thread.join()
        signal.signal(signal.SIGUSR1, old)
    assert interrupted > 5


@pytest.mark.skipif(not hasattr(torch.no_grad.__enter__, "__objclass__"), reason="no extension")
def test_entering_takes_no_arguments():
    with pytest.raises(TypeError, match=r"^no_grad.__enter__\(\) takes 1 positional argument"):
        torch.no_grad().__enter__(1)
    with pytest.raises(TypeError, match=r"^no_grad.__enter__\(\) got an unexpected keyword"):
        torch.no_grad().__enter__(x=1)
    assert torch.is_grad_enabled()

"""The small modules of torch.utils. Where nothing else is said, values are PyTorch 2.13's."""

import gc
import pickle
import re
import sys
import threading
import traceback

import pytest

import flambeau as torch
from flambeau.utils import _device, _traceback, cpp_extension, throughput_benchmark
from flambeau.utils._foreach_utils import _group_tensors_by_device_and_dtype, _has_foreach_support
from flambeau.utils._ordered_set import OrderedSet
from flambeau.utils.module_tracker import ModuleTracker
from flambeau.utils.weak import TensorWeakRef, WeakIdKeyDictionary, WeakIdRef

# ---- weak references ----------------------------------


def test_keys_are_compared_by_identity():
    a, b = torch.ones(2), torch.ones(2)
    found = WeakIdKeyDictionary({a: 1})
    found[b] = 2
    assert (len(found), found[a], b in found, torch.ones(2) in found, 3 in found) == (
        2, 1, True, False, False)
    assert list(found.values()) == [1, 2] and found.get(torch.ones(1), 7) == 7
    assert [key is a or key is b for key in found] == [True, True]
    del b
    assert len(found) == 1
    with pytest.raises(KeyError):
        found[torch.ones(1)]
    with pytest.raises(TypeError, match="cannot create weak reference to 'int' object"):
        found[3] = 4


def test_dictionaries_can_be_copied_joined_and_emptied():
    a, b = torch.ones(2), torch.ones(2)
    found = WeakIdKeyDictionary({a: 1})
    assert found.copy() == found and found | {b: 2} == {a: 1, b: 2}
    assert found.setdefault(a, 9) == 1 and found.setdefault(b, 9) == 9
    assert found.pop(b) == 9 and found.pop(b, 5) == 5
    key, value = found.popitem()
    assert key is a and value == 1
    with pytest.raises(KeyError, match="dictionary is empty"):
        found.popitem()


def test_references():
    a = torch.ones(2)
    one, two, tensor = WeakIdRef(a), WeakIdRef(a), TensorWeakRef(a)
    assert one == two and hash(one) == id(a) and tensor() is a
    del a
    assert one != two and one() is tensor() is None
    with pytest.raises(AssertionError, match="expected"):
        TensorWeakRef(3)


# ---- ordered sets -------------------------------------


def test_ordered_sets():
    s = OrderedSet([3, 1, 2, 3])
    assert repr(s) == "OrderedSet([3, 1, 2])" and s == {1, 2, 3}
    assert list(s | [5]) == [3, 1, 2, 5] and list(s & [1, 3]) == [1, 3] and list(s - [1]) == [3, 2]
    assert list(s ^ OrderedSet([1, 9])) == [3, 2, 9]
    assert list(s.union([7], [8])) == [3, 1, 2, 7, 8]
    assert OrderedSet([1]) <= s and s.issubset([1, 2, 3, 4]) and s.isdisjoint([9])
    s.update([8], [9])
    s.discard(100)
    assert s.pop() == 9 and list(reversed(s)) == [8, 2, 1, 3]
    with pytest.raises(KeyError):
        s.remove(99)
    with pytest.raises(KeyError):
        OrderedSet().pop()
    with pytest.raises(TypeError, match="unhashable"):
        hash(s)
    s.intersection_update([8, 2])
    assert list(s) == [2, 8] and pickle.loads(pickle.dumps(s)) == s
    assert list(s.symmetric_difference([2, 4])) == [8, 4]


# ---- modules and devices ------------------------------


def test_modules_that_run_are_known():
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    tracker, seen = ModuleTracker(), []
    net[0].register_forward_pre_hook(lambda *_: seen.append((set(tracker.parents), tracker.is_bw)))
    x = torch.ones(1, 2, requires_grad=True)
    with tracker:
        y = net(x)
        y.register_hook(lambda grad: seen.append((set(tracker.parents), tracker.is_bw)))
        y.sum().backward()
    assert seen == [({"Global", "Sequential", "Sequential.0"}, False),
                    ({"Global", "Sequential", "Sequential.1"}, True)]
    assert tracker.parents == {"Global"}


def test_default_devices():
    @_device.set_device("meta")
    def make():
        return torch.ones(1)
    assert make().device.type == "meta" and torch.ones(1).device.type == "cpu"
    with _device.DeviceContext("meta"):
        assert torch.ones(1).device.type == "meta"
    with pytest.raises(RuntimeError, match="Cannot decorate classes"):
        _device.device_decorator("meta", OrderedSet)


def test_tensors_are_grouped():
    a, b, c = torch.ones(1), torch.ones(1, dtype=torch.float64), torch.zeros(1)
    groups = _group_tensors_by_device_and_dtype([[a, b, c], [None, a, b], []], with_indices=True)
    assert set(groups) == {(a.device, torch.float32), (a.device, torch.float64)}
    lists, places = groups[a.device, torch.float32]
    assert lists[0] == [a, c] and lists[1][0] is None and lists[2] == [] and places == [0, 2]
    for wrong, message in (([], "nested_tensorlist.empty"), ([[]], r"nested_tensorlist\[0\]"),
                           ([[a], [a, a]], "of the length of the first, 1"),
                           ([[None]], "the 0-th Tensor is not")):
        with pytest.raises(RuntimeError, match=message):
            _group_tensors_by_device_and_dtype(wrong)
    assert _has_foreach_support([a, None], a.device)
    assert not _has_foreach_support([torch.nn.Parameter(a)], a.device)


# ---- the rest -----------------------------------------


def test_times_and_throughput():
    assert [throughput_benchmark.format_time(**{unit: 3.0}) for unit in (
        "time_us", "time_ms", "time_s")] == ["3.000us", "3.000ms", "3.000s"]
    with pytest.raises(AssertionError, match="only one of"):
        throughput_benchmark.format_time()
    threads = set()
    bench = torch.utils.ThroughputBenchmark(lambda x: threads.add(threading.get_ident()))
    with pytest.raises(RuntimeError, match="provide benchmark inputs"):
        bench.benchmark()
    bench.add_input(3)
    stats = bench.benchmark(num_calling_threads=2, num_warmup_iters=1, num_iters=5)
    assert stats.num_iters == 5 and re.match("Average latency per example: ", str(stats))
    assert len(threads) >= 2


def test_traces():
    assert _traceback.shorten_filename("/a/b.py", base="/a") == "b.py"
    trace = _traceback.CapturedTraceback.extract()
    assert trace.summary()[-1].name == "test_traces" and "test_traces" in trace.format()[-1]
    try:
        raise ValueError
    except ValueError:
        assert _traceback.format_traceback_short(sys.exc_info()[2]).endswith("in test_traces")
    trace.cleanup()
    assert trace.format() == []


def test_switches():
    deterministic = torch.utils.deterministic
    assert deterministic.fill_uninitialized_memory is True
    deterministic.fill_uninitialized_memory = False
    assert deterministic.fill_uninitialized_memory is False
    deterministic.fill_uninitialized_memory = True
    with pytest.raises(RuntimeError, match="expected a bool, but got int"):
        deterministic.fill_uninitialized_memory = 3
    assert torch.utils.backcompat.broadcast_warning.enabled is False


def test_extensions_in_cpp_are_refused(tmp_path):
    for call in (lambda: cpp_extension.load("x", []), lambda: cpp_extension.CppExtension("x", []),
                 cpp_extension.BuildExtension, cpp_extension.include_paths):
        with pytest.raises(NotImplementedError, match="flambeau has none of PyTorch's C"):
            call()
    with pytest.raises(OSError, match="CUDA_HOME environment variable is not set"):
        cpp_extension.CUDAExtension("x", ["x.cu"])
    assert cpp_extension.CUDA_HOME is None
    assert not cpp_extension.check_compiler_ok_for_platform("no-such-compiler")


def test_environment():
    from flambeau.utils import collect_env
    answers = {"gcc --version": (0, "gcc (Debian 12) 12.2.0\nCopyright", ""),
               "cat /etc/*-release": (0, 'PRETTY_NAME="Debian 12"\nVERSION=12', "")}
    def run(command):
        return answers.get(command, (1, "", "not there"))
    assert collect_env.get_gcc_version(run) == "(Debian 12) 12.2.0"
    assert collect_env.get_clang_version(run) is None
    assert collect_env.check_release_file(run) == "Debian 12"
    assert collect_env.run("echo hi") == (0, "hi", "")
    assert collect_env.run(["no-such-command"])[0] == 127
    unknown = collect_env.SystemEnv(*[None] * len(collect_env.SystemEnv._fields))
    text = collect_env.pretty_str(unknown._replace(
        torch_version="2.13", pip_packages="numpy==2", pip_version="pip3"))
    assert text.startswith("PyTorch version: 2.13\nIs debug build: Could not collect\n")
    assert "[pip3] numpy==2\n[conda] Could not collect" in text


def test_garbage_is_seen_and_drawn():
    from flambeau.utils.viz import _cycles
    found = []
    stop = _cycles.observe_garbage(found.extend)
    gc.collect()
    found.clear()
    cycle = [torch.ones(2)]
    cycle.append(cycle)
    del cycle
    gc.collect()
    stop()
    assert {"list", "Tensor"} <= {type(obj).__name__ for obj in found}
    cycle = next(obj for obj in found if type(obj) is list
                 and any(type(item) is torch.Tensor for item in obj))
    nodes = _cycles.create_graph([cycle, cycle[0]], filter=lambda o: isinstance(o, torch.Tensor))
    assert [node.root for node in nodes] == [False, True]
    assert ("[0]", 1) in nodes[0].referrents
    assert '0 -> 1 [label = "[0]"]' in _cycles.to_dot(nodes)
    assert "digraph" in _cycles.to_html(nodes)
    cycle.clear()


def test_model_zoo_is_the_hub():
    from flambeau.utils import model_zoo
    assert model_zoo.load_url is torch.hub.load_state_dict_from_url
    assert callable(model_zoo.tqdm) and model_zoo.tqdm is torch.hub.tqdm


def test_traces_show_the_source_of_compiled_functions():
    source = "def f(x):\n    def g(x):\n        raise RuntimeError()  # here\n    return g(x)\n"
    scope = {"__compile_source__": source}
    exec(source, scope)
    with pytest.raises(RuntimeError) as caught, _traceback.report_compile_source_on_error():
        scope["f"](1)
    shown = "".join(traceback.format_tb(caught.value.__traceback__))
    assert "# here" in shown and "return g(x)" in shown and "in g" in shown


def test_generators_make_tensors_on_the_device():
    @_device.set_device("meta")
    def pair():
        first = yield torch.ones(1)
        yield torch.ones(2), first
    steps = pair()
    assert next(steps).is_meta
    made, sent = steps.send(5)
    assert made.is_meta and sent == 5

"""The order of the house: which way imports point, how large rooms and modules are."""

import ast
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import flambeau

ROOT = Path(flambeau.__file__).parent
MODULES = {".".join((ROOT.name, *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(
    ".__init__"): path for path in sorted(ROOT.rglob("*.py"))}

# PyTorch's own names force these: a module offers the classes of one that builds on it.
FORCED = {
    "flambeau.ao.quantization.observer": "HistogramObserver builds on its observers",
    "flambeau.distributed._shard.sharded_tensor": "its ops are registered by its own decorator",
}
# Pairs of modules that import each other inside functions, for the same reason: each of the two has
# names in PyTorch that need the other.
FORCED_PAIRS = {
    "ao.quantization.fake_quantize ao.quantization.observer":
        "load_observer_state_dict looks for fake quantisers, which hold observers",
    "ao.quantization.histogram ao.quantization.observer": "see FORCED",
    "ao.quantization.qconfig ao.quantization.qconfig_mapping":
        "get_default_qconfig_dict is a mapping of QConfigs as a dictionary",
    "distributed._c10d.groups distributed._c10d.process_group":
        "ProcessGroup.split_group makes groups",
    "distributed._c10d.ops.functional distributed._functional_collectives":
        "the op _wrap_tensor_autograd gives an AsyncCollectiveTensor, which calls the ops",
    "distributed._shard.sharding_spec.api distributed._shard.sharding_spec.chunk_sharding_spec":
        "api infers the spec of shards, which may be a ChunkShardingSpec, a subclass of api's",
    "distributed.checkpoint._async_process_executor distributed.checkpoint.state_dict_saver":
        "async_save takes an executor, which calls save",
    "distributed.checkpoint._async_thread_executor distributed.checkpoint.state_dict_saver":
        "async_save takes an executor, which calls save",
    "distributed.rpc.api distributed.rpc.internal": "the pickler of calls knows RRef",
    "distributed.rpc.api distributed.rpc.rref": "methods of RRef make calls, which give RRefs",
    "distributed.tensor._api distributed.tensor._dispatch": "DTensor's dispatcher makes DTensors",
    "distributed.tensor._api distributed.tensor._redistribute":
        "DTensor.redistribute is a Function that gives a DTensor",
    "distributed.tensor._api distributed.tensor._utils":
        "try_find_mesh_from_args looks for DTensors",
    "distributed.tensor._dtensor_spec distributed.tensor.placement_types":
        "placement_types offers DTensorSpec, which holds placements",
    "fx._symbolic_trace fx.graph_module":
        "a GraphModule is traced again when it is unpickled, and tracing gives one",
    "fx.node fx.operator_schemas": "Node.normalized_arguments reads the schemas of what it calls",
    "nn._functional_parts nn.functional": "functional offers helpers that call its functions",
    "nn.functional nn.grad": "functional offers grad, which differentiates its convolutions",
    "storage.typed storage.untyped": "UntypedStorage.type gives a TypedStorage, which holds one",
}
# What layers import, inside functions, from packages that are built on them.
FORCED_UP = {
    "core.copy_on_write storage": "what shares memory until a write are storages",
    "dispatch.aten.compositions ao.quantization.utils":
        "_choose_qparams_per_tensor chooses as observers do",
    "dispatch.aten.forms _ops": "modes are shown overloads, which torch._ops defines",
    "dispatch.aten.keys amp.autocast_mode": "autocast is on where its keys are not set aside",
    "dispatch.aten.subclass utils._pytree": "arguments are trees",
    "ops.factory.from_data storage": "tensor(storage) takes its elements",
    "ops.linalg.einsum backends": "backends.opt_einsum has the settings of einsum",
    "ops.python.methods _serialization.checkpoint_names": "tensors are pickled as in files",
    "ops.python.methods functorch.dim": "Tensor.index takes first-class dimensions",
    "ops.python.methods storage": "Tensor.storage and untyped_storage",
    "ops.quantized.calls _ops": "a batch norm of quantised tensors is ops.quantized.batch_norm",
    "ops.view.memory storage": "from_file maps a storage",
}
LAYERS = ("kernels", "core", "schema", "dispatch", "transforms", "ops")
OURS = ("_support/", "core/", "dispatch/", "distributed/_c10d/", "kernels/", "ops/", "schema/",
        "transforms/")
LARGEST = 16          # modules that a room has at most
LONGEST = 500         # more lines than a reader should have to take in


@cache
def imports_of(name, everywhere=False):
    """The modules of the package that a module imports: as it loads, or wherever it does. What
    only type checkers read is not imported."""
    return all_imports_of(name)[everywhere]


@cache
def all_imports_of(name):
    early, late = [], []            # what is imported as it loads, and what waits for a call

    def collect(body, found):
        for node in body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                found.append(node)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                collect(node.body, late)
            elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
                collect(node.orelse, found)
            else:
                for block in ("body", "orelse", "finalbody", "handlers", "cases"):
                    inner = getattr(node, block, ())
                    collect(inner if isinstance(inner, list) else (), found)

    collect(ast.parse(MODULES[name].read_text(encoding="utf-8")).body, early)
    return modules_named(name, early), modules_named(name, early + late)


def modules_named(name, statements):
    """Those of the package that the import statements of a module name."""
    found = set()
    for node in statements:
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
            continue
        home = node.module or ""
        if node.level:
            package = name.split(".")
            if MODULES[name].name != "__init__.py":
                package.pop()
            home = ".".join([*package[:len(package) - node.level + 1], *filter(None, [home])])
        for alias in node.names:
            inner = f"{home}.{alias.name}"
            found.add(inner if inner in MODULES else home)
    return {one for one in found if one in MODULES} - {name, ROOT.name}


def circles(graph):
    """The sets of modules that import each other, by Tarjan's algorithm (1972)."""
    order, low, stack, found = {}, {}, [], []

    def visit(name):
        order[name] = low[name] = len(order)
        stack.append(name)
        for other in graph[name]:
            if other not in order:
                visit(other)
            if other in stack:
                low[name] = min(low[name], low[other])
        if low[name] == order[name]:
            circle = stack[stack.index(name):]
            del stack[-len(circle):]
            if len(circle) > 1:
                found.append(set(circle))

    for name in graph:
        if name not in order:
            visit(name)
    return found


def test_no_modules_import_each_other_in_a_circle():
    found = circles({name: imports_of(name) for name in MODULES})
    assert [circle for circle in found if not circle & set(FORCED)] == []
    assert all(any(name in circle for circle in found) for name in FORCED)


def test_no_two_modules_import_each_other():
    """Nor do two modules anywhere, inside functions or not."""
    graph = {name: imports_of(name, everywhere=True) for name in MODULES}
    found = {" ".join(one.removeprefix("flambeau.") for one in (name, other))
             for name in graph for other in graph[name] if name < other and name in graph[other]}
    assert found == {*FORCED_PAIRS}


def test_no_layers_import_each_other_in_a_circle_inside_functions():
    """Nor does an import that waits for a call lead back: what core needs of what stands above it
    is listed in `core/late_bound.py`."""
    names = {name for name in MODULES if name.split(".")[1:2] and name.split(".")[1] in LAYERS}
    assert circles({name: imports_of(name, everywhere=True) & names for name in names}) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="each module is imported in a child process")
def test_modules_can_be_imported_first():
    """Whichever module of a layer comes first, its imports lead to no half-made module."""
    names = [name for name in MODULES if name.split(".")[1:2] and name.split(".")[1] in LAYERS]
    program = f"""
import importlib, os, sys, traceback
import flambeau
for name in {names!r}:
    if os.fork() == 0:
        try:
            importlib.import_module(name)
        except ImportError:
            print(name, traceback.format_exc().splitlines()[-1], flush=True)
        os._exit(0)
    os.wait()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == "", done.stdout + done.stderr


def test_what_computes_knows_nothing_of_networks():
    for name in MODULES:
        if name.split(".")[1:2] and name.split(".")[1] in LAYERS:
            used = {one for one in imports_of(name, everywhere=True)
                    if one.startswith("flambeau.nn.")}
            assert used == set(), f"{name} imports {sorted(used)}"


def test_imports_point_down():
    """Core knows nothing of what is built on it (`late_bound` names what it calls there), and
    kernels know nothing of tensors."""
    for below, above in (("core", LAYERS[2:]), ("schema", LAYERS[3:]), ("kernels", LAYERS[1:])):
        for name in MODULES:
            if name.split(".")[1:2] == [below]:
                used = {one for one in imports_of(name, everywhere=True)
                        if one.split(".")[1] in above}
                assert used <= {"flambeau.core.dtypes"}, f"{name} imports {sorted(used)}"


def test_layers_know_nothing_of_what_is_built_on_them():
    """Nor do they wait for a call to import it, but where PyTorch's names lead there."""
    found = {f"{name} {other}".replace("flambeau.", "") for name in MODULES
             if name.split(".")[1:2] and name.split(".")[1] in LAYERS
             for other in imports_of(name, everywhere=True)
             if other.split(".")[1] not in (*LAYERS, "_support")}
    assert found == {*FORCED_UP}


def test_rooms_are_small():
    """Those that are ours to divide: PyTorch's names force what is in `nn.modules` or `optim`."""
    rooms = {path.parent for path in MODULES.values()
             if path.relative_to(ROOT).as_posix().startswith(OURS)}
    counts = {room.relative_to(ROOT).as_posix():
              len([path for path in room.glob("*.py") if path.name != "__init__.py"])
              for room in rooms}
    assert {room: count for room, count in counts.items() if count > LARGEST} == {}
    for room in (ROOT / "ops").iterdir():
        assert not room.is_dir() or room.name == "__pycache__" or counts[f"ops/{room.name}"] >= 2


def test_modules_can_be_taken_in():
    long = {name for name, path in MODULES.items()
            if len(path.read_text(encoding="utf-8").splitlines()) > LONGEST}
    assert long == set(), f"divide {sorted(long)}"


ROLES = {"kernel": ("", "_kernel"), "batch": ("", "_batched"), "vjp": ("", "_vjp"),
         "jvp": ("", "_jvp"), "parts": ("", "_parts"), "out_type": ("", "_out_type"),
         "canonical": (("_check", "_prepare", "check_"), "")}


@cache
def declared_with(path):
    """What the calls of a module name as those facts of a declaration, and the functions in it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    said = [(keyword.arg, keyword.value.id) for node in ast.walk(tree) if isinstance(node, ast.Call)
            for keyword in node.keywords
            if keyword.arg in ROLES and isinstance(keyword.value, ast.Name)]
    return said, {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("fact", ROLES)
def test_functions_of_a_declaration_are_named_after_what_they_are_there(fact):
    """The kernel of an op, its batching rule, its derivatives … have one suffix each."""
    prefix, suffix = ROLES[fact]
    for path in sorted((ROOT / "ops").rglob("*.py")):
        said, own = declared_with(path)
        wrong = {name for as_what, name in said if as_what == fact and name in own
                 and not (name.startswith(prefix) and name.endswith(suffix))}
        assert wrong == set(), f"{path.relative_to(ROOT)}: {fact}="


def test_loose_modules_have_names_that_torch_has():
    """A module beside `flambeau/__init__.py` is one of torch's, or of those that start it."""
    ours = {"__main__", "as_torch", "functorch"}
    loose = {path.stem for path in ROOT.glob("*.py")} - {"__init__"}
    assert loose - ours <= TORCH


TORCH = set("""
    _VF __config__ __future__ _custom_ops _guards _jit_internal _linalg_utils _lobpcg _lowrank _ops
    _tensor _tensor_str _utils
    _utils_internal _vmap_internals accelerator functional futures hub library monitor mps mtia
    overrides quantization quasirandom random return_types serialization special storage
    torch_version types version xpu
""".split())

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def python(program, *, cwd=None):
    """Run a program in a process of its own; returns its standard output."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], cwd=cwd or ROOT,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_modules_are_the_same_objects_under_both_names():
    python("""
        import flambeau.as_torch
        import flambeau
        import torch
        import torch.nn.functional as F
        from torch.nn import functional
        import torch.optim.lr_scheduler
        from torch.utils.data import DataLoader
        import flambeau.utils.data
        assert torch is flambeau
        assert torch.nn is flambeau.nn
        assert F is functional is flambeau.nn.functional
        assert torch.optim.lr_scheduler is flambeau.optim.lr_scheduler
        assert DataLoader is flambeau.utils.data.DataLoader
        assert torch.__spec__.name == flambeau.__spec__.name == "flambeau"
        assert torch.nn.functional.__spec__.name == "flambeau.nn.functional"
        import importlib
        assert importlib.import_module("torch.nn.functional") is F
    """)


def test_submodules_are_not_imported_early():
    python("""
        import sys
        import flambeau
        before = set(sys.modules)
        import flambeau.as_torch
        extra = {name for name in set(sys.modules) - before if name.startswith("flambeau")}
        assert extra == {"flambeau.as_torch"}, extra
    """)


def test_metadata_and_specs_find_torch():
    python("""
        import importlib.metadata, importlib.util
        import flambeau.as_torch, flambeau
        assert importlib.util.find_spec("torch") is not None
        assert importlib.util.find_spec("torch.nn") is not None
        assert importlib.util.find_spec("torch.does_not_exist") is None
        version = importlib.metadata.version("torch")
        assert version == flambeau.__version__ and version.startswith("2.13.0")
        assert importlib.metadata.distribution("torch").metadata["Name"] == "torch"
        assert importlib.metadata.version("numpy")
        assert "torch" in importlib.metadata.packages_distributions()
        import torch
        assert torch.__version__ >= "2.0" and torch.__version__ >= (2, 13)
        try:
            import torch.does_not_exist
        except ModuleNotFoundError as error:
            assert "torch.does_not_exist" in str(error)
        else:
            raise AssertionError
    """)


def test_functorch():
    python("""
        import flambeau.as_torch
        import functorch, flambeau.functorch
        from functorch import make_functional, vmap
        assert functorch is flambeau.functorch
    """)


def test_classes_pickle_under_both_names():
    python("""
        import pickle
        import flambeau.as_torch, torch
        module = torch.nn.Linear(2, 3)
        data = pickle.dumps(module, 0)
        assert type(pickle.loads(data)) is torch.nn.Linear
        assert type(pickle.loads(data.replace(b"cflambeau.", b"ctorch."))) is torch.nn.Linear
    """)


def test_real_torch_that_is_already_there(tmp_path):
    (tmp_path / "torch.py").write_text("")
    output = python(f"""
        import sys
        sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]
        import torch
        try:
            import flambeau.as_torch
        except ImportError as error:
            print(error)
    """)
    assert "'torch' is already imported" in output
    assert "flambeau run script.py" in output


def test_torch_on_the_path_is_not_found(tmp_path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise AssertionError")
    python(f"""
        import sys
        sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]
        import flambeau.as_torch, torch.nn, flambeau
        assert torch.nn is flambeau.nn
    """)


def test_libraries_find_the_names_they_expect():
    code = ("import flambeau.as_torch, torch, torch.backends.cudnn, torch.distributed.constants\n"
            "assert torch.__name__ == 'torch'\n"
            "assert torch.backends.cudnn is sys.modules['torch.backends.cudnn']\n"
            "assert not torch.backends.cudnn.is_available()\n"
            "assert torch._C._get_tracing_state() is None\n")
    subprocess.run([sys.executable, "-c", "import sys\n" + code], check=True)


def test_active_transforms_are_seen():
    import flambeau

    seen = []
    flambeau.vmap(lambda x: seen.append(flambeau._C._are_functorch_transforms_active()) or x)(
        flambeau.ones(2))
    assert seen == [True] and not flambeau._C._are_functorch_transforms_active()


def test_ops_is_one_object():
    python("""
        import flambeau.as_torch
        import torch.ops
        from torch.ops import aten
        import flambeau
        assert torch.ops is flambeau.ops and aten is torch.ops.aten
    """)


CHILDREN = """
    import flambeau.as_torch
    import multiprocessing
    import torch

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(1, 1)

        def forward(self, x):
            from importlib.metadata import version
            assert version("torch") == torch.__version__
            return torch.nn.functional.relu(x) * 2
"""


def test_spawned_processes_have_torch(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(CHILDREN + """
    if __name__ == "__main__":
        for method in ("spawn", "forkserver"):
            with multiprocessing.get_context(method).Pool(1) as pool:
                assert pool.apply(Module(), (torch.ones(1),)).item() == 2
    """).replace("import flambeau.as_torch", "import sys\nif __name__ == '__main__':\n"
                                             "    import flambeau.as_torch"))
    python(f"import subprocess, sys; subprocess.run([sys.executable, {str(script)!r}], check=True,"
           f"env={{'PYTHONPATH': {str(ROOT)!r}}})", cwd=tmp_path)


def test_processes_of_joblib_have_torch(tmp_path):
    pytest.importorskip("joblib")
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(CHILDREN + """
    if __name__ == "__main__":
        import joblib
        found = joblib.Parallel(2)(joblib.delayed(Module())(torch.ones(1) * i) for i in range(4))
        assert [x.item() for x in found] == [0, 2, 4, 6]
    """))
    python(f"import subprocess, sys; subprocess.run([sys.executable, {str(script)!r}], check=True,"
           f"env={{'PYTHONPATH': {str(ROOT)!r}}})", cwd=tmp_path)


def test_classes_functions_and_errors_say_torch():
    said = python("""
        import flambeau.as_torch
        import pickle
        import torch, torch.nn.utils.prune
        for one in (torch.nn.Linear, torch.nn.utils.prune.PruningContainer, torch.optim.SGD,
                    torch.nn.functional.relu, torch.abs, torch.special.erf, torch.cuda):
            print(getattr(one, "__module__", one.__name__))
        for module in (torch, torch.nn, torch.nn.functional, torch.optim.lr_scheduler):
            try:
                module.no_such_name
            except AttributeError as error:
                print(error)
        print(pickle.loads(pickle.dumps(torch.nn.utils.prune.PruningContainer)).__qualname__)
    """)
    assert said.splitlines() == [
        "torch.nn.modules.linear", "torch.nn.utils.prune", "torch.optim.sgd",
        "torch.nn.functional", "torch", "torch._C._special", "torch.cuda",
        *(f"module '{name}' has no attribute 'no_such_name'" for name in (
            "torch", "torch.nn", "torch.nn.functional", "torch.optim.lr_scheduler")),
        "PruningContainer"]


def test_named_results_are_pickled():
    python("""
        import flambeau.as_torch
        import copy
        import pickle
        import torch
        found = torch.sort(torch.tensor([3.0, 1.0]))
        text = pickle.dumps(found)
        assert b"torch.return_types" in text and b"flambeau" not in text
        for again in (pickle.loads(text), copy.deepcopy(found)):
            assert type(again) is torch.return_types.sort, type(again)
            assert again.indices.tolist() == [1, 0]
    """)


def test_modules_of_settings_can_be_imported():
    """They take no names but those of settings; the import system writes one."""
    python("""
        import flambeau.as_torch
        import torch._dynamo.config as config
        from torch._decomp import get_decompositions
        assert config.__spec__.name == "flambeau._dynamo.config"
    """)

"""The build backend, which does not build where PyTorch is installed: pip takes this distribution
for another version of PyTorch, and would uninstall that."""
import os
import sysconfig
from importlib.metadata import distributions
from pathlib import Path

from scikit_build_core import build
from scikit_build_core.build import *


def _refuse_to_replace_pytorch():
    # what pip runs is the interpreter that it installs for; uv names the environment
    folders = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    environment = Path(os.environ.get("VIRTUAL_ENV") or os.devnull)
    folders |= {*map(str, environment.glob("[Ll]ib/**/site-packages"))}
    for found in distributions(name="torch", path=sorted(folders)):
        if "flambeau" not in found.version:
            raise SystemExit(
                f"PyTorch {found.version} is installed in {found.locate_file('')}. flambeau's "
                "torch would replace it. Run `pip uninstall torch` first if that is what you "
                "want; or leave PyTorch and use `import flambeau.as_torch` or `flambeau run`.")


def prepare_metadata_for_build_wheel(*args, **kwargs):
    _refuse_to_replace_pytorch()
    return build.prepare_metadata_for_build_wheel(*args, **kwargs)


def build_wheel(*args, **kwargs):
    _refuse_to_replace_pytorch()
    return build.build_wheel(*args, **kwargs)


def build_editable(*args, **kwargs):
    _refuse_to_replace_pytorch()
    return build.build_editable(*args, **kwargs)

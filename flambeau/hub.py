"""Models from a folder with a `hubconf.py`: what they offer, their documentation, and the models.

Only local folders: flambeau downloads nothing. `load_state_dict_from_url` finds files that are
already in the folder `get_dir()`.
"""
from __future__ import annotations

import builtins
import contextlib
import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlparse

_CONF = "hubconf.py"
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")      # the hash in a file's name: resnet18-bfd8deac.pth
_directory: str | None = None


def get_dir() -> str:
    """Where models are kept: what `set_dir` said, else `$TORCH_HOME/hub`, else
    `$XDG_CACHE_HOME/torch/hub`, else `~/.cache/torch/hub`."""
    return os.path.join(_get_torch_home(), "hub") if _directory is None else _directory


def _get_torch_home() -> str:
    """Where libraries keep what they download, by the variables that `get_dir` names."""
    cache = os.path.join(os.getenv("XDG_CACHE_HOME", "~/.cache"), "torch")
    return os.path.expanduser(os.getenv("TORCH_HOME", cache))


def set_dir(d: str | os.PathLike) -> None:
    """Set what `get_dir` gives."""
    global _directory
    _directory = os.path.expanduser(d)


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None,
                         progress: bool = True) -> None:
    """Not offered: flambeau downloads nothing."""
    raise NotImplementedError(f"torch.hub.download_url_to_file: flambeau downloads nothing; "
                              f"save {url} as {dst} by other means")


def load_state_dict_from_url(url: str, model_dir: str | None = None, map_location: Any = None,
                             progress: bool = True, check_hash: bool = False,
                             file_name: str | None = None, weights_only: bool = False
                             ) -> dict[str, Any]:
    """`torch.load` of the file of that name in `model_dir`, `get_dir()/checkpoints` by default."""
    import flambeau
    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    path = os.path.join(folder, file_name or os.path.basename(urlparse(url).path))
    if not os.path.exists(path):
        raise NotImplementedError("torch.hub.load_state_dict_from_url: flambeau downloads "
                                  f"nothing; save {url} as {path}")
    return flambeau.load(path, map_location=map_location, weights_only=weights_only)


@contextlib.contextmanager
def _importable(folder: str) -> Iterator[None]:
    """The modules in `folder` can be imported."""
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def _hubconf(folder: Any) -> Any:
    """The module `hubconf.py` of a folder, after a look at its dependencies."""
    path = os.path.join(folder, _CONF)
    if not os.path.exists(path):
        raise FileNotFoundError(2, "No such file or directory", path)
    spec = importlib.util.spec_from_file_location(_CONF, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    missing = [name for name in getattr(module, "dependencies", None) or ()
               if importlib.util.find_spec(name) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    return module


def _entry(module: Any, name: Any) -> Any:
    if not isinstance(name, str):
        raise ValueError("Invalid input: model should be a string of function name")
    found = getattr(module, name, None)
    if found is None or not callable(found):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return found


def _folder_of(repository: str) -> str:
    """A folder as it is; `owner/name[:ref]` where an earlier download has put it."""
    if os.path.isdir(repository):
        return os.fspath(repository)
    name, _, ref = repository.partition(":")
    owner, name = name.split("/")
    for branch in [ref] if ref else ["main", "master"]:
        folder = os.path.join(get_dir(), "_".join([owner, name, branch.replace("/", "_")]))
        if os.path.isdir(folder):
            return folder
    raise NotImplementedError(f"torch.hub: flambeau downloads nothing, and {repository!r} is "
                              f"neither a folder nor in {get_dir()}; fetch it by other means and "
                              "use source='local'")


def list(github: str, force_reload: bool = False, skip_validation: bool = False,
         trust_repo: Any = "check", verbose: bool = True) -> builtins.list[str]:
    """The names of what the `hubconf.py` of a repository offers.

    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "hubconf.py").write_text("def answer(add=0): return 42 + add")
    >>> list(str(folder))
    ['answer']
    >>> load(folder, "answer", source="local", add=1)
    43
    """
    folder = _folder_of(github)
    with _importable(folder):
        module = _hubconf(folder)
    return [name for name in dir(module)
            if callable(getattr(module, name)) and not name.startswith("_")]


def help(github: str, model: str, force_reload: bool = False, skip_validation: bool = False,
         trust_repo: Any = "check") -> str | None:
    """The documentation of an entry of a repository."""
    folder = _folder_of(github)
    with _importable(folder):
        return _entry(_hubconf(folder), model).__doc__


def load(repo_or_dir: Any, model: str, *args: Any, source: str = "github",
         trust_repo: Any = "check", force_reload: bool = False, verbose: bool = True,
         skip_validation: bool = False, **kwargs: Any) -> Any:
    """Call the entry `model` of a folder (`source="local"`) with the arguments given."""
    source = source.lower()
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    folder = _folder_of(repo_or_dir) if source == "github" else os.fspath(repo_or_dir)
    with _importable(folder):
        return _entry(_hubconf(folder), model)(*args, **kwargs)


__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url",
           "set_dir"]

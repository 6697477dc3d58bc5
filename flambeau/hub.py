"""Models from a folder or a repository with a `hubconf.py`: what they offer, their documentation,
and the models; and files of weights, downloaded once.

Repositories on GitHub are downloaded to `get_dir()`. Their code runs in this process, so one that
has not been trusted before is asked about first.
"""
from __future__ import annotations

import builtins
import contextlib
import hashlib
import importlib.util
import os
import re
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlparse

from flambeau._support.hub_repositories import (  # noqa: F401
    ENV_GITHUB_TOKEN,
    _git_archive_link,
    check_trusted,
    fetch_repository,
    repository_of,
)

ENV_TORCH_HOME, ENV_XDG_CACHE_HOME = "TORCH_HOME", "XDG_CACHE_HOME"
DEFAULT_CACHE_DIR = "~/.cache"
MODULE_HUBCONF, VAR_DEPENDENCY = "hubconf.py", "dependencies"
READ_DATA_CHUNK = 128 * 1024
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")      # the hash in a file's name: resnet18-bfd8deac.pth
MAP_LOCATION = Callable[[Any, str], Any] | Any | str | dict[str, str] | None
_hub_dir: str | None = None


class _Faketqdm:
    """A progress bar in text, where tqdm is not installed: it writes percentages to stderr."""

    def __init__(self, total: int | None = None, disable: bool = False, unit: str | None = None,
                 *args: Any, **kwargs: Any):
        self.total, self.disable, self.n = total, disable, 0

    def update(self, n: int) -> None:
        """`n` more are done."""
        self.n += n
        if not self.disable:
            sys.stderr.write(f"\r{100 * self.n / self.total:.1f}%" if self.total
                             else f"\r{self.n:.1f} bytes")
            sys.stderr.flush()

    def set_description(self, *args: Any, **kwargs: Any) -> None:
        """Has no effect."""

    @classmethod
    def write(cls, s: str) -> None:
        """Write a line."""
        sys.stderr.write(f"{s}\n")

    def close(self) -> None:
        """End the line."""
        self.disable = True
        sys.stderr.write("\n")

    def __enter__(self) -> _Faketqdm:
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        if not self.disable:
            sys.stderr.write("\n")


def __getattr__(name: str) -> Any:
    if name != "tqdm":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from tqdm import tqdm as found
    except ImportError:
        found = _Faketqdm
    globals()["tqdm"] = found
    return found


def _get_torch_home() -> str:
    """Where downloads are kept: `$TORCH_HOME`, else `$XDG_CACHE_HOME/torch`, else
    `~/.cache/torch`."""
    cache = os.path.join(os.getenv(ENV_XDG_CACHE_HOME, DEFAULT_CACHE_DIR), "torch")
    return os.path.expanduser(os.getenv(ENV_TORCH_HOME, cache))


def get_dir() -> str:
    """Where models are kept: what `set_dir` said, else the folder `hub` of `$TORCH_HOME`, by
    default `~/.cache/torch`."""
    return os.path.join(_get_torch_home(), "hub") if _hub_dir is None else _hub_dir


def set_dir(d: str | os.PathLike) -> None:
    """Set what `get_dir` gives."""
    global _hub_dir
    _hub_dir = os.path.expanduser(d)


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None,
                         progress: bool = True) -> None:
    """Save what an address gives as a file, which is there only when it is complete.

    Args:
        url: the address; `file:` is one too.
        dst: the path of the file.
        hash_prefix: how the SHA256 of the data must begin.
        progress: show a progress bar on stderr.
    """
    from urllib.request import Request, urlopen
    dst = os.path.expanduser(dst)
    response = urlopen(Request(url, headers={"User-Agent": "torch.hub"}))
    size = response.headers.get("Content-Length")
    digest = hashlib.sha256()
    bar = sys.modules[__name__].tqdm
    with response, tempfile.NamedTemporaryFile(
            delete=False, dir=os.path.dirname(dst) or ".", suffix=".partial") as file:
        try:
            with bar(total=size and int(size), disable=not progress, unit="B", unit_scale=True,
                     unit_divisor=1024) as shown:
                while chunk := response.read(READ_DATA_CHUNK):
                    file.write(chunk)
                    digest.update(chunk)
                    shown.update(len(chunk))
            found = digest.hexdigest()
            if hash_prefix is not None and not found.startswith(hash_prefix):
                raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{found}")')
            file.close()
            os.chmod(file.name, 0o666 & ~_umask())
            os.replace(file.name, dst)
        except BaseException:
            file.close()
            os.remove(file.name)
            raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def load_state_dict_from_url(url: str, model_dir: str | None = None, map_location: Any = None,
                             progress: bool = True, check_hash: bool = False,
                             file_name: str | None = None, weights_only: bool = False
                             ) -> dict[str, Any]:
    """`torch.load` of a file that is downloaded to `model_dir`, by default `get_dir()/checkpoints`,
    unless it is there already.

    Args:
        check_hash: the name of the file says how its SHA256 begins: `resnet18-bfd8deac.pth`.
        file_name: the name under which it is kept, by default as in the address.
    """
    import flambeau
    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, file_name or os.path.basename(urlparse(url).path))
    if not os.path.exists(path):
        sys.stdout.write(f'Downloading: "{url}" to {path}\n')
        match = HASH_REGEX.search(os.path.basename(path)) if check_hash else None
        download_url_to_file(url, path, match[1] if match else None, progress=progress)
    if _is_packed(path):
        warnings.warn("Falling back to the old format < 1.6. This support will be deprecated in "
                      "favor of default zipfile format introduced in 1.6. Please redo torch.save() "
                      "to save it in the new zipfile format.", FutureWarning, stacklevel=2)
        with zipfile.ZipFile(path) as packed:
            member = packed.infolist()[0]
            packed.extract(member, folder)
        path = os.path.join(folder, member.filename)
    return flambeau.load(path, map_location=map_location, weights_only=weights_only)


def _is_packed(path: str) -> bool:
    """Is this a file of weights inside a zip file, rather than one that is a zip file itself?"""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as packed:
        members = packed.infolist()
    return len(members) == 1 and not members[0].is_dir()


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
    path = os.path.join(os.path.realpath(folder), MODULE_HUBCONF)
    if not os.path.exists(path):
        raise FileNotFoundError(2, "No such file or directory", path)
    spec = importlib.util.spec_from_file_location(MODULE_HUBCONF, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    missing = [name for name in getattr(module, VAR_DEPENDENCY, None) or ()
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


def _folder_of(repository: str, force_reload: bool, trust_repo: Any, verbose: bool,
               skip_validation: bool) -> str:
    """A folder as it is; `owner/name[:ref]` where it has been downloaded to, now or before."""
    if os.path.isdir(repository):
        return os.fspath(repository)
    return _get_cache_or_reload(repository, force_reload, trust_repo, verbose, skip_validation)


def _parse_repo_info(github: str) -> tuple[str, str, str]:
    return repository_of(github, get_dir())


def _check_repo_is_trusted(repo_owner: str, repo_name: str, owner_name_branch: str, trust_repo: Any
                           ) -> None:
    check_trusted(repo_owner, repo_name, owner_name_branch, trust_repo, get_dir())


def _get_cache_or_reload(github: str, force_reload: bool, trust_repo: Any, verbose: bool = True,
                         skip_validation: bool = False) -> str:
    """The folder that a repository has been downloaded to, now or before."""
    return fetch_repository(github, get_dir(), download_url_to_file, force_reload=force_reload,
                            trust_repo=trust_repo, verbose=verbose,
                            skip_validation=skip_validation)


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
    folder = _folder_of(github, force_reload, trust_repo, verbose, skip_validation)
    with _importable(folder):
        module = _hubconf(folder)
    return [name for name in dir(module)
            if callable(getattr(module, name)) and not name.startswith("_")]


def help(github: str, model: str, force_reload: bool = False, skip_validation: bool = False,
         trust_repo: Any = "check") -> str | None:
    """The documentation of an entry of a repository."""
    folder = _folder_of(github, force_reload, trust_repo, True, skip_validation)
    with _importable(folder):
        return _entry(_hubconf(folder), model).__doc__


def load(repo_or_dir: Any, model: str, *args: Any, source: str = "github",
         trust_repo: Any = "check", force_reload: bool = False, verbose: bool = True,
         skip_validation: bool = False, **kwargs: Any) -> Any:
    """Call the entry `model` of a repository `owner/name[:ref]` on GitHub, or of a folder
    (`source="local"`), with the arguments given.

    Args:
        trust_repo: True trusts the repository from now on; False asks; `"check"` asks unless it has
            been trusted before.
        force_reload: download it again.
        verbose: say where it is.
        skip_validation: don't ask GitHub whether the branch, tag or commit belongs to the
            repository.
    """
    source = source.lower()
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    folder = os.fspath(repo_or_dir) if source == "local" else _folder_of(
        repo_or_dir, force_reload, trust_repo, verbose, skip_validation)
    with _importable(folder):
        return _entry(_hubconf(folder), model)(*args, **kwargs)


__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url",
           "set_dir"]

"""Repositories on GitHub for `torch.hub`: which one is meant, whether it is trusted, and its files.
"""
from __future__ import annotations

import json
import os
import shutil
import sys
import warnings
import zipfile
from collections.abc import Callable
from typing import Any

ENV_GITHUB_TOKEN = "GITHUB_TOKEN"
_TRUSTED_REPO_OWNERS = ("facebookresearch", "facebookincubator", "pytorch", "fairinternal")


def fetch_repository(github: str, folder: str, download: Callable[..., None], *,
                     force_reload: bool, trust_repo: Any, verbose: bool, skip_validation: bool
                     ) -> str:
    """The folder with the files of `owner/name[:ref]`, which are downloaded if they are not
    there."""
    os.makedirs(folder, exist_ok=True)
    owner, name, ref = repository_of(github, folder)
    full_name = "_".join(part.replace("/", "_").replace("\\", "_") for part in (owner, name, ref))
    target = os.path.join(folder, full_name)
    check_trusted(owner, name, full_name, trust_repo, folder)
    if os.path.exists(target) and not force_reload:
        if verbose:
            sys.stdout.write(f"Using cache found in {target}\n")
        return target
    if not skip_validation:
        _validate_not_a_forked_repo(owner, name, ref)
    packed = os.path.join(folder, f"{full_name}.zip")
    address = _git_archive_link(owner, name, ref)
    sys.stdout.write(f'Downloading: "{address}" to {packed}\n')
    download(address, packed, progress=False)
    _unpack(packed, target)
    return target


def _unpack(packed: str, target: str) -> None:
    """Put the one folder that a zip file holds where `target` says."""
    folder = os.path.dirname(target)
    with zipfile.ZipFile(packed) as archive:
        top = archive.infolist()[0].filename.split("/")[0]
        root = os.path.realpath(folder) + os.sep
        for member in archive.infolist():
            if not os.path.realpath(os.path.join(folder, member.filename)).startswith(root):
                raise ValueError(f"Path traversal attempted: {member.filename}")
        shutil.rmtree(target, ignore_errors=True)
        archive.extractall(folder)
    shutil.move(os.path.join(folder, top), target)
    os.remove(packed)


def _git_archive_link(repo_owner: str, repo_name: str, ref: str) -> str:
    """The address of a repository's files."""
    return f"https://github.com/{repo_owner}/{repo_name}/zipball/{ref}"


def repository_of(github: str, folder: str) -> tuple[str, str, str]:
    """Owner, name and branch (or tag, or commit) of `owner/name[:ref]`; without one the branch
    `main` or `master`, which may be known only from what is in `folder`.

    >>> repository_of("pytorch/vision:v0.20", "hub")
    ('pytorch', 'vision', 'v0.20')
    """
    repository, _, ref = github.partition(":")
    owner, name = repository.split("/")
    return owner, name, ref or _default_branch(owner, name, folder)


def _default_branch(owner: str, name: str, folder: str) -> str:
    from urllib.error import HTTPError, URLError
    from urllib.request import urlopen
    try:
        with urlopen(f"https://github.com/{owner}/{name}/tree/main/"):
            return "main"
    except HTTPError as error:
        if error.code != 404:
            raise
        return "master"
    except URLError as error:
        for branch in ("main", "master"):
            if os.path.exists(os.path.join(folder, f"{owner}_{name}_{branch}")):
                return branch
        raise RuntimeError("It looks like there is no internet connection and the repo could not "
                           f"be found in the cache ({folder})") from error


def _validate_not_a_forked_repo(repo_owner: str, repo_name: str, ref: str) -> None:
    """Raise unless a branch, tag or commit belongs to the repository itself, not to a copy of it:
    the files of both are found under the same address."""
    from urllib.request import Request, urlopen
    headers = {"Accept": "application/vnd.github.v3+json"}
    if os.environ.get(ENV_GITHUB_TOKEN):
        headers["Authorization"] = f"token {os.environ[ENV_GITHUB_TOKEN]}"
    for kind in ("branches", "tags"):
        page = 0
        while True:
            page += 1
            address = (f"https://api.github.com/repos/{repo_owner}/{repo_name}/{kind}"
                       f"?per_page=100&page={page}")
            with urlopen(Request(address, headers=headers)) as response:
                found = json.loads(response.read().decode())
            if not found:
                break
            if any(entry["name"] == ref or entry["commit"]["sha"].startswith(ref)
                   for entry in found):
                return
    raise ValueError(f"Cannot find {ref} in https://github.com/{repo_owner}/{repo_name}. If it's a "
                     "commit from a forked repo, please call hub.load() with forked repo directly.")


def check_trusted(repo_owner: str, repo_name: str, owner_name_branch: str, trust_repo: Any,
                  folder: str) -> None:
    """Ask whether to trust a repository, unless the answer is known."""
    path = os.path.join(folder, "trusted_list")
    known: set[str] = set()
    if os.path.exists(path):
        with open(path) as file:
            known = {line.strip() for line in file}
    full_name = f"{repo_owner}_{repo_name}"
    trusted = full_name in known or repo_owner in _TRUSTED_REPO_OWNERS or \
        os.path.exists(os.path.join(folder, owner_name_branch))
    if trust_repo is None and not trusted:
        warnings.warn("You are about to download and run code from an untrusted repository. Give "
                      "trust_repo=True, False or 'check' to say whether you trust it.",
                      stacklevel=5)
        return
    if trust_repo is False or (trust_repo == "check" and not trusted):
        answer = input(f"The repository {full_name} does not belong to the list of trusted "
                       "repositories and as such cannot be downloaded. Do you trust this "
                       "repository and wish to add it to the trusted list of repositories "
                       "(y/N)?").lower()
        if answer not in ("y", "yes"):
            raise Exception("Untrusted repository." if answer in ("", "n", "no")
                            else f"Unrecognized response {answer}.")
    elif trust_repo is not True and trust_repo != "check":
        raise ValueError(f"trust_repo is True, False or 'check', but got {trust_repo!r}")
    if full_name not in known and (trust_repo is not None):
        with open(path, "a") as file:
            file.write(full_name + "\n")


__all__ = ["ENV_GITHUB_TOKEN", "check_trusted", "fetch_repository", "repository_of"]

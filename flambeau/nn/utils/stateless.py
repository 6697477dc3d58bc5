"""Calling a module with other parameters and buffers than its own."""

from __future__ import annotations

import contextlib
import warnings

from flambeau import Tensor
from flambeau._support.scopes import Scope, restoring
from flambeau.nn.utils._named_member_accessor import NamedMemberAccessor

__all__ = ["functional_call"]


def functional_call(module, parameters_and_buffers, args=None, kwargs=None, *,
                    tie_weights: bool = True, strict: bool = False):
    """The old place of `flambeau.func.functional_call`."""
    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be "
        "removed in a future version of PyTorch. Please use `torch.func.functional_call` instead "
        "which is a drop-in replacement.", FutureWarning, stacklevel=2)
    return _functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights,
                            strict=strict)


def _functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True,
                     strict=False):
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    return restoring(_call, module, parameters_and_buffers, args, kwargs, tie_weights, strict)


def _call(module, parameters_and_buffers, args, kwargs, tie_weights, strict):
    with _reparametrize_module(module, parameters_and_buffers, tie_weights, strict):
        return module(*args, **({} if kwargs is None else kwargs))


def _members(module):
    """(dotted name, tensor) of all parameters and buffers, tied ones under all their names."""
    yield from module.named_parameters(remove_duplicate=False)
    yield from module.named_buffers(remove_duplicate=False)


def _untie_named_tensors_map(module, parameters_and_buffers):
    """`parameters_and_buffers` with the values of tied tensors under all names that share them."""
    names_of = {}
    for name, tensor in _members(module):
        names_of.setdefault(tensor, set()).add(name)
    tied_groups = [names for names in names_of.values() if len(names) > 1]
    given = set(parameters_and_buffers.keys())
    untied = dict(parameters_and_buffers)
    for names in tied_groups:
        named = names & given
        if len(named) > 1 and len({parameters_and_buffers[name] for name in named}) != 1:
            raise ValueError(f"functional_call got multiple values for keys {sorted(named)}, "
                             "which are tied. Consider using tie_weights=False")
        if named:
            value = parameters_and_buffers[next(iter(named))]
            untied.update(dict.fromkeys(names, value))
    return untied


def _check_keys(module, names):
    own = {name for name, _ in _members(module)}
    missing, unexpected = sorted(own - set(names)), sorted(set(names) - own)
    messages = []
    if unexpected:
        listed = ", ".join(repr(name) for name in unexpected)
        messages.append(f"Unexpected key(s): {listed}.")
    if missing:
        listed = ", ".join(repr(name) for name in missing)
        messages.append(f"Missing key(s): {listed}.")
    if messages:
        module_name = module._get_name()
        body = "\n\t".join(messages)
        raise RuntimeError(f"Error(s) in reparametrizing for {module_name}:\n\t{body}")


class _Replaced(Scope):
    """Inside, members of modules are others: (dictionary of members, name, tensor) for each."""

    def __init__(self, changes):
        self._changes = changes


def _places(module, replaced):
    """Where the members are: (path, the dictionary that holds it, or None, owner, name, tensor)."""
    accessor = NamedMemberAccessor(module)
    for path, tensor in replaced.items():
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{tensor} is not an instance of torch.Tensor")
        prefix, _, name = path.rpartition(".")
        owner = accessor.get_submodule(prefix)
        if not name:
            raise KeyError('tensor name can\'t be empty string ""')
        members = next((m for m in (owner._parameters, owner._buffers) if name in m), None)
        if members is None and not isinstance(getattr(type(owner), name, None), property):
            members = vars(owner)
        yield path, members, owner, name, tensor


@contextlib.contextmanager
def _reparametrize_module(module, parameters_and_buffers, tie_weights=False, strict=False):
    """Within, the module has other members; what it wrote to them ends up in the mapping."""
    replaced = parameters_and_buffers
    if tie_weights:
        replaced = _untie_named_tensors_map(module, parameters_and_buffers)
    if strict:
        _check_keys(module, replaced)
    places = list(_places(module, replaced))
    changes = [(members, name, tensor) for _, members, _, name, tensor in places
               if members is not None]
    originals = []
    with _Replaced(tuple(changes)):
        try:
            for _, members, owner, name, tensor in places:
                if members is None:
                    originals.append((owner, name, getattr(owner, name)))
                    setattr(owner, name, tensor)
            yield
        finally:
            for path, members, owner, name, _ in places:
                if path in parameters_and_buffers:
                    parameters_and_buffers[path] = getattr(owner, name) if members is None \
                        else members.get(name)
            for owner, name, original in originals:
                setattr(owner, name, original)

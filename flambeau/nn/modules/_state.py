"""Saving and loading: `state_dict` and `load_state_dict`."""

import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Mapping

import flambeau
from flambeau import Tensor
from flambeau.nn.parameter import Parameter, is_lazy

from . import _hooks

EXTRA_STATE_KEY = "_extra_state"


def _entries_of_children(entries, prefix):
    """For each name, the entries under it."""
    found = {}
    for key, value in entries.items():
        if key.startswith(prefix):
            name, dot, _ = key[len(prefix):].partition(".")
            if dot:
                found.setdefault(name, {})[key] = value
    return found


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    __slots__ = ()

    def __repr__(self):
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class StateMixin:
    """A module's state as a flat dictionary of tensors, and back."""

    # -------------------------------------------------------------- hooks

    def _register_state_dict_hook(self, hook):
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was "
                "previously registered via register_state_dict_post_hook")
        return _hooks._register(self._state_dict_hooks, hook)

    def register_state_dict_post_hook(self, hook):
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after this module's state was
        written into `state_dict`, which the hook may change in place."""
        hook._from_public_api = True
        return _hooks._register(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook):
        """Call ``hook(module, prefix, keep_vars)`` before `state_dict` reads the module."""
        return _hooks._register(self._state_dict_pre_hooks, hook)

    def _register_load_state_dict_pre_hook(self, hook, with_module=False):
        wrapped = _hooks._WrappedHook(hook, self if with_module else None)
        return _hooks._register(self._load_state_dict_pre_hooks, wrapped)

    def register_load_state_dict_pre_hook(self, hook):
        """Call ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs)`` before this module's entries are loaded."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook):
        """Call ``hook(module, incompatible_keys)`` after loading; it may change the two lists of
        keys in place."""
        return _hooks._register(self._load_state_dict_post_hooks, hook)

    # -------------------------------------------------------------- extra state

    def get_extra_state(self):
        """What else belongs into the `state_dict`; for subclasses to define."""
        raise RuntimeError(
            "Reached a code path in Module.get_extra_state() that should never be called. "
            "Please file an issue at https://github.com/pytorch/pytorch/issues/new?template="
            "bug-report.yml to report this bug.")

    def set_extra_state(self, state):
        """Take back what `get_extra_state` gave; for subclasses to define."""
        raise RuntimeError(
            "Reached a code path in Module.set_extra_state() that should never be called. "
            "Please file an issue at https://github.com/pytorch/pytorch/issues/new?template="
            "bug-report.yml to report this bug.")

    def _has_extra_state(self, method):
        return getattr(type(self), method, None) is not getattr(StateMixin, method)

    # -------------------------------------------------------------- saving

    def _persistent_members(self):
        """(name, tensor) of everything that is saved: parameters, then persistent buffers."""
        yield from self._parameters.items()
        for name, buffer in self._buffers.items():
            if name not in self._non_persistent_buffers_set:
                yield name, buffer

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        for name, tensor in self._persistent_members():
            if tensor is not None:
                destination[prefix + name] = tensor if keep_vars else tensor.detach()
        extra_state_key = prefix + EXTRA_STATE_KEY
        if self._has_extra_state("get_extra_state"):
            destination[extra_state_key] = self.get_extra_state()

    def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
        """All parameters and persistent buffers, by dotted name.

        The tensors share memory with the module's and are detached from the graph unless
        `keep_vars`.

        Example:
            >>> list(nn.Linear(2, 3).state_dict())
            ['weight', 'bias']
        """
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead. Refer to "
                "https://pytorch.org/docs/main/generated/torch.nn.Module.html"
                "#torch.nn.Module.state_dict for details.",
                FutureWarning, stacklevel=2)
            given = dict(zip(("destination", "prefix", "keep_vars"), args))
            destination = given["destination"] if destination is None else destination
            prefix = given.get("prefix", "") if prefix == "" else prefix
            keep_vars = given.get("keep_vars", False) if keep_vars is False else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        state = self.__dict__
        for hook in state.get("_state_dict_pre_hooks", {}).values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=prefix + name + ".",
                                  keep_vars=keep_vars)
        for hook in state.get("_state_dict_hooks", {}).values():
            replaced = hook(self, destination, prefix, local_metadata)
            if replaced is not None:
                if getattr(hook, "_from_public_api", False):
                    raise RuntimeError("state_dict post-hook must return None")
                destination = replaced
        return destination

    # -------------------------------------------------------------- loading

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys,
                              unexpected_keys, error_msgs):
        """Copy this module's own entries, those of `prefix`, out of `state_dict`."""
        for hook in self.__dict__.get("_load_state_dict_pre_hooks", {}).values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                 error_msgs)
        assign = local_metadata.get("assign_to_params_buffers", False)
        members = {name: value for name, value in self._persistent_members() if value is not None}
        for name, member in members.items():
            key = prefix + name
            if key in state_dict:
                error = self._load_member(name, key, member, state_dict[key], assign)
                if error:
                    error_msgs.append(error)
            elif strict:
                missing_keys.append(key)

        extra_state_key = prefix + EXTRA_STATE_KEY
        if self._has_extra_state("set_extra_state"):
            if extra_state_key in state_dict:
                self.set_extra_state(state_dict[extra_state_key])
            elif strict:
                missing_keys.append(extra_state_key)
        elif strict and extra_state_key in state_dict:
            unexpected_keys.append(extra_state_key)

        if strict:
            for key in state_dict:
                if not key.startswith(prefix) or key == extra_state_key:
                    continue
                name, dot, _ = key[len(prefix):].partition(".")
                if name not in (self._modules if dot else members):
                    unexpected_keys.append(key)

    def _load_member(self, name, key, member, value, assign):
        """Load one tensor; the text of what went wrong, or None."""
        if not isinstance(value, Tensor) and not hasattr(type(value), "__torch_function__"):
            return (
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like '
                f"object from checkpoint but received {type(value)}")
        lazy = is_lazy(member)
        if not lazy and len(member.shape) == 0 and len(value.shape) == 1:
            value = value[0]  # scalars were saved with one dimension long ago
        if not lazy and value.shape != member.shape:
            return (f"size mismatch for {key}: copying a param with shape {value.shape} from "
                    f"checkpoint, the shape in current model is {member.shape}.")
        if member.is_meta and not value.is_meta and not assign:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta "
                "parameter in the current model, which is a no-op. (Did you mean to pass "
                "`assign=True` to assign items in the state dictionary to their corresponding key "
                "in the module instead of copying them in place?)", stacklevel=2)
        try:
            with flambeau.no_grad():
                if assign:
                    self._assign_member(name, member, value)
                else:
                    member.copy_(value)
        except Exception as error:
            return (
                f'While copying the parameter named "{key}", whose dimensions in the model are '
                f"{member.size()} and whose dimensions in the checkpoint are {value.size()}, an "
                f"exception occurred : {error.args}.")
        return None

    def _assign_member(self, name, member, value):
        if isinstance(member, Parameter):
            if isinstance(value, Parameter):
                value.requires_grad_(member.requires_grad)
            else:
                value = Parameter(value, requires_grad=member.requires_grad)
        setattr(self, name, value)

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Copy parameters and buffers from `state_dict` into this module and those below it.

        With `strict` the keys must match exactly. With `assign` the given tensors become the
        module's own, instead of being copied into what is there. Returns the missing and the
        unexpected keys.

        Example:
            >>> net = nn.Linear(2, 3)
            >>> net.load_state_dict(nn.Linear(2, 3).state_dict())
            <All keys matched successfully>
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)
        if metadata is not None:
            state_dict._metadata = metadata
        missing_keys, unexpected_keys, error_msgs = [], [], []

        def load(module, entries, prefix=""):
            local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
            if assign:
                local_metadata["assign_to_params_buffers"] = assign
            module._load_from_state_dict(entries, prefix, local_metadata, True, missing_keys,
                                         unexpected_keys, error_msgs)
            if module._modules:
                below = _entries_of_children(entries, prefix)
            for name, child in module._modules.items():
                if child is not None:
                    load(child, below.get(name, {}), prefix + name + ".")
            incompatible = _IncompatibleKeys(missing_keys, unexpected_keys)
            for hook in module.__dict__.get("_load_state_dict_post_hooks", {}).values():
                assert hook(module, incompatible) is None, (
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not "
                    "expected to return new values, if incompatible_keys need to be modified, "
                    "it should be done inplace.")

        load(self, state_dict)
        if strict:
            errors = [f"{what} key(s) in state_dict: {', '.join(repr_key(key) for key in keys)}. "
                      for what, keys in (("Missing", missing_keys), ("Unexpected", unexpected_keys))
                      if keys]
            error_msgs[:0] = errors
        if error_msgs:
            details = "\n\t".join(error_msgs)
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{details}")
        return _IncompatibleKeys(missing_keys, unexpected_keys)


def repr_key(key):
    return f'"{key}"'



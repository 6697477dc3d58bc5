"""What belongs to a module: parameters, buffers and submodules, by attribute name.

The three dictionaries `_parameters`, `_buffers` and `_modules` are the only truth. Assignment
sorts a value into the one where it belongs; `__getattr__`, which Python calls only for names it
does not find otherwise, reads them.
"""

import flambeau
from flambeau import Tensor
from flambeau.nn.parameter import Buffer, Parameter

from . import _hooks

REGISTRIES = ("_parameters", "_buffers", "_modules")


def typename(value):
    """The name of a value's class as messages give it, e.g. ``torch.FloatTensor`` or ``int``."""
    return flambeau.typename(value)


def passed_through_hooks(hooks, module, name, value):
    for hook in hooks.values():
        replaced = hook(module, name, value)
        if replaced is not None:
            value = replaced
    return value


_PLAIN = frozenset({bool, int, float, str, tuple, type(None)})    # never a member of a registry


class Registry:
    """Attribute access, registration and enumeration of a module's members."""

    # -------------------------------------------------------------- attributes

    def __getattr__(self, name):
        state = self.__dict__
        members = state.get("_parameters")
        if members is not None and name in members:
            return members[name]
        members = state.get("_modules")
        if members is not None and name in members:
            return members[name]
        members = state.get("_buffers")
        if members is not None:
            if name in members:
                return members[name]
            if name in _hooks.HOOK_DICTS or name in _hooks.STATE_HOOK_DICTS:
                return self._make_hook_dict(name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name, value):
        state = self.__dict__
        if type(value) in _PLAIN and name not in state.get("_parameters", ()) and (
                name not in state.get("_modules", ()) and name not in state.get("_buffers", ())):
            return object.__setattr__(self, name, value)
        if isinstance(value, Tensor):
            if isinstance(value, Parameter):
                self._check_initialized("_parameters", "parameters")
                self._forget(name, keep="_parameters")
                return self.register_parameter(name, value)
        elif isinstance(value, Registry) and name not in state.get("_parameters", ()):
            self._check_initialized("_modules", "module")
            self._forget(name, keep="_modules")
            self._modules[name] = passed_through_hooks(_hooks._global_module_registration_hooks,
                                                       self, name, value)
            return None
        if name in state.get("_parameters", ()):
            if value is not None:
                raise TypeError(f"cannot assign '{typename(value)}' as parameter '{name}' "
                                "(torch.nn.Parameter or None expected)")
            self.register_parameter(name, value)
        elif name in state.get("_modules", ()):
            if value is not None:
                raise TypeError(f"cannot assign '{typename(value)}' as child module '{name}' "
                                "(torch.nn.Module or None expected)")
            self._modules[name] = passed_through_hooks(
                _hooks._global_module_registration_hooks, self, name, value
            )
        elif name in state.get("_buffers", ()) or (
            isinstance(value, Tensor) and isinstance(value, Buffer)):
            self._assign_buffer(name, value)
        else:
            object.__setattr__(self, name, value)
        return None

    def _assign_buffer(self, name, value):
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(f"cannot assign '{typename(value)}' as buffer '{name}' "
                            "(torch.nn.Buffer, torch.Tensor or None expected)")
        if isinstance(value, Buffer):
            self._check_initialized("_buffers", "buffer")
            self._forget(name, keep="_buffers")
            self.register_buffer(name, value, getattr(value, "persistent", True))
            return
        self._buffers[name] = passed_through_hooks(_hooks._global_buffer_registration_hooks, self,
                                                   name, value)

    def _check_initialized(self, registry, what):
        if registry not in self.__dict__:
            raise AttributeError(f"cannot assign {what} before Module.__init__() call")

    def _forget(self, name, keep):
        """Take `name` out of everywhere but the registry `keep`."""
        state = self.__dict__
        state.pop(name, None)
        for registry in REGISTRIES:
            if registry != keep:
                state[registry].pop(name, None)
        state["_non_persistent_buffers_set"].discard(name)

    def __delattr__(self, name):
        for registry in REGISTRIES:
            if name in self.__dict__.get(registry, ()):
                del self.__dict__[registry][name]
                if registry == "_buffers":
                    self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self):
        names = {*dir(type(self)), *self.__dict__}
        names.update(*(self.__dict__.get(registry, ()) for registry in REGISTRIES))
        return sorted(name for name in names if not name[:1].isdigit())

    # -------------------------------------------------------------- registration

    def _check_member_name(self, what, name, registry):
        if not isinstance(name, str):
            raise TypeError(f"{what} name should be a string. Got {typename(name)}")
        if "." in name:
            raise KeyError(f'module name can\'t contain ".", got: {name}' if what == "module"
                           else f'{what} name can\'t contain "."')
        if name == "":
            raise KeyError(f'{what} name can\'t be empty string ""')
        if name not in registry and self._has_attribute(name):
            raise KeyError(f"attribute '{name}' already exists")

    def _has_attribute(self, name):
        """`hasattr`, without the cost of an error where the answer is no."""
        cls, state = type(self), self.__dict__
        if hasattr(cls, name) or name.startswith("_") or (
                cls.__getattr__ is not Registry.__getattr__):
            return hasattr(self, name)      # a property may have nothing to give yet
        return name in state or any(name in state[registry] for registry in REGISTRIES)

    def register_buffer(self, name, tensor, persistent=True):
        """Add a tensor that is state but not a parameter, such as a running mean.

        A buffer moves with the module; a persistent one is also part of its `state_dict`.

        Example:
            >>> module = nn.Module()
            >>> module.register_buffer("steps", flambeau.zeros(1))
            >>> list(module.state_dict())
            ['steps']
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_member_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"cannot assign '{typename(tensor)}' object to buffer '{name}' "
                            "(torch Tensor or None required)")
        self._buffers[name] = passed_through_hooks(_hooks._global_buffer_registration_hooks, self,
                                                   name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name, param):
        """Add a parameter, or None for one that this module does without."""
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_member_name("parameter", name, self._parameters)
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(f"cannot assign '{typename(param)}' object to parameter '{name}' "
                                "(torch.nn.Parameter or None required)")
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must "
                    f"be created explicitly. To express '{name}' as a function of another Tensor, "
                    "compute the value in the forward() method.")
        self._parameters[name] = passed_through_hooks(_hooks._global_parameter_registration_hooks,
                                                      self, name, param)

    def add_module(self, name, module):
        """Add a submodule, reachable as the attribute `name`."""
        if module is not None and not isinstance(module, Registry):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        self._check_member_name("module", name, self._modules)
        self._modules[name] = passed_through_hooks(_hooks._global_module_registration_hooks, self,
                                                   name, module)

    def register_module(self, name, module):
        """The same as `add_module`."""
        self.add_module(name, module)

    # -------------------------------------------------------------- by dotted path

    def get_submodule(self, target):
        """The submodule at a dotted path such as ``"encoder.layers.0"``; ``""`` is the module."""
        if target == "":
            return self
        module = self
        for name in target.split("."):
            if not hasattr(module, name):
                raise AttributeError(module._get_name() + f" has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Registry):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target, module, strict=False):
        """Put `module` at a dotted path; with `strict` something must be there already."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        *atoms, name = target.split(".")
        if not isinstance(module, Registry):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path = ".".join(atoms)
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(parent._get_name() + f" has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Registry):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def _get_member(self, target):
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if not hasattr(owner, name):
            raise AttributeError(owner._get_name() + f" has no attribute `{name}`")
        return owner, name, getattr(owner, name)

    def get_parameter(self, target):
        """The parameter at a dotted path."""
        _, name, param = self._get_member(target)
        if not isinstance(param, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return param

    def get_buffer(self, target):
        """The buffer at a dotted path."""
        owner, name, buffer = self._get_member(target)
        if name not in owner._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return buffer

    # -------------------------------------------------------------- enumeration

    def _named_members(self, get_members_fn, prefix="", recurse=True, remove_duplicate=True):
        """(dotted name, member) of this module and, with `recurse`, of all below it."""
        seen = set()
        modules = (self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse
                   else [(prefix, self)])
        for path, module in modules:
            for name, member in get_members_fn(module):
                if member is None or member in seen:
                    continue
                if remove_duplicate:
                    seen.add(member)
                yield path + ("." if path else "") + name, member

    def parameters(self, recurse=True):
        """The parameters of this module and, with `recurse`, of its submodules.

        Example:
            >>> [tuple(param.shape) for param in nn.Linear(2, 3).parameters()]
            [(3, 2), (3,)]
        """
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        """Pairs (dotted name, parameter)."""
        yield from self._named_members(lambda module: module._parameters.items(), prefix, recurse,
                                       remove_duplicate)

    def buffers(self, recurse=True):
        """The buffers of this module and, with `recurse`, of its submodules."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        """Pairs (dotted name, buffer)."""
        yield from self._named_members(lambda module: module._buffers.items(), prefix, recurse,
                                       remove_duplicate)

    def children(self):
        """The direct submodules, each once."""
        for _, module in self.named_children():
            yield module

    def named_children(self):
        """Pairs (name, direct submodule), each submodule once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate=True):
        """This module and all below it; one that is used twice comes once."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        """Pairs (dotted name, module) of this module and all below it, in depth-first order.

        Example:
            >>> net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
            >>> [name for name, _ in net.named_modules()]
            ['', '0', '1']
        """
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                path = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, path, remove_duplicate)



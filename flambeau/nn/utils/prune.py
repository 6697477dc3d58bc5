"""Pruning: setting weights to zero by a mask, and keeping them there.

A pruned parameter `weight` becomes the attribute `weight = weight_orig * weight_mask`, recomputed
by a forward pre-hook; `weight_orig` is the parameter and `weight_mask` a buffer.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable

import flambeau
from flambeau._support.own_methods import define_in_subclasses

from .convert_parameters import parameters_to_vector


class BasePruningMethod(ABC):
    """A way to choose what is pruned. Subclasses define `compute_mask` and `PRUNING_TYPE`."""

    _tensor_name: str

    def __call__(self, module, inputs):
        """The hook: set the attribute before every forward."""
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t, default_mask):
        """The mask for scores `t`, which prunes at least what `default_mask` does."""

    def apply_mask(self, module):
        """The pruned tensor: original times mask."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        mask = getattr(module, self._tensor_name + "_mask")
        original = getattr(module, self._tensor_name + "_orig")
        return mask.to(dtype=original.dtype) * original

    @classmethod
    def apply(cls, module, name, *args, importance_scores=None, **kwargs):
        """Prune a parameter with this method, on top of what pruned it before; returns the hook."""
        old_hooks = [(key, hook) for key, hook in module._forward_pre_hooks.items()
                     if isinstance(hook, BasePruningMethod) and hook._tensor_name == name]
        if len(old_hooks) > 1:
            raise AssertionError(
                f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}."
                " Use a PruningContainer.")
        for key, _ in old_hooks:
            del module._forward_pre_hooks[key]
        method = cls(*args, **kwargs)
        method._tensor_name = name
        if old_hooks:
            method = cls._chained(old_hooks[0][1], method)
        original = getattr(module, name)
        if importance_scores is None:
            importance_scores = original
        elif importance_scores.shape != original.shape:
            raise AssertionError(
                "importance_scores should have the same shape as parameter "
                f"{name} of {module}, got {importance_scores.shape} vs {original.shape}")
        if not isinstance(method, PruningContainer):
            module.register_parameter(name + "_orig", original)
            del module._parameters[name]
            default_mask = flambeau.ones_like(original)
        else:
            default_mask = getattr(module, name + "_mask").detach().clone(
                memory_format=flambeau.contiguous_format)
        try:
            mask = method.compute_mask(importance_scores, default_mask=default_mask)
            module.register_buffer(name + "_mask", mask)
            setattr(module, name, method.apply_mask(module))
            module.register_forward_pre_hook(method)
        except Exception:
            if not isinstance(method, PruningContainer):
                original = getattr(module, name + "_orig")
                module.register_parameter(name, original)
                del module._parameters[name + "_orig"]
            raise
        return method

    @staticmethod
    def _chained(old, method):
        if isinstance(old, PruningContainer):
            old.add_pruning_method(method)
            return old
        container = PruningContainer(old)
        container.add_pruning_method(method)
        return container

    def prune(self, t, default_mask=None, importance_scores=None):
        """`t` pruned, without a module.

        Example:
            >>> from flambeau.nn.utils import prune
            >>> prune.L1Unstructured(amount=1).prune(flambeau.tensor([3.0, -1.0, 2.0]))
            tensor([3., -0., 2.])
        """
        if importance_scores is None:
            importance_scores = t
        elif importance_scores.shape != t.shape:
            raise AssertionError("importance_scores should have the same shape as tensor t, "
                                 f"got {importance_scores.shape} vs {t.shape}")
        default_mask = flambeau.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(importance_scores, default_mask=default_mask)

    def remove(self, module) -> None:
        """Make the pruned tensor the parameter, for good. The hook is removed by the caller."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        weight = self.apply_mask(module)
        if hasattr(module, self._tensor_name):
            delattr(module, self._tensor_name)
        original = module._parameters.pop(self._tensor_name + "_orig")
        original.data = weight.data
        del module._buffers[self._tensor_name + "_mask"]
        setattr(module, self._tensor_name, original)


class PruningContainer(BasePruningMethod):
    """Several prunings of one tensor, each of what the ones before have left."""

    def __init__(self, *args):
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if not isinstance(args, Iterable):  # only one item
            self._tensor_name = args._tensor_name
            self.add_pruning_method(args)
        elif len(args) == 1:
            self._tensor_name = args[0]._tensor_name
            self.add_pruning_method(args[0])
        else:
            for method in args:
                self.add_pruning_method(method)

    def add_pruning_method(self, method):
        """Add one more."""
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on "
                f"the parameter named '{self._tensor_name}' to PruningContainer {self}."
                + f" Found '{method._tensor_name}'")
        self._pruning_methods += (method,)

    def __len__(self):
        return len(self._pruning_methods)

    def __iter__(self):
        return iter(self._pruning_methods)

    def __getitem__(self, idx):
        return self._pruning_methods[idx]

    def compute_mask(self, t, default_mask):
        method = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype)
        if method.PRUNING_TYPE == "unstructured":
            left = mask == 1
        elif method.PRUNING_TYPE == "structured":
            if not hasattr(method, "dim"):
                raise AttributeError("Pruning methods of PRUNING_TYPE "
                                     '"structured" need to have the attribute `dim` defined.')
            others = [d for d in range(t.dim()) if d != method.dim % t.dim()]
            kept = mask.sum(dim=others) != 0
            left = tuple(kept if d == method.dim % t.dim() else slice(None) for d in range(t.dim()))
        elif method.PRUNING_TYPE == "global":
            left = (slice(None),) * t.dim()
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        new = method.compute_mask(t[left], default_mask=mask[left])
        mask[left] = new.to(dtype=mask.dtype)
        return mask


# ------------------------------------------------------------------ the methods

class Identity(BasePruningMethod):
    """Prunes nothing, but makes the mask."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        return default_mask

    @classmethod
    def apply(cls, module, name):
        return super().apply(module, name)


@define_in_subclasses("__init__")
class _ByAmount(BasePruningMethod):
    """A method that prunes `amount` entries: a number if int, a share if float."""

    def __init__(self, amount):
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def _count(self, size):
        n = _compute_nparams_toprune(self.amount, size)
        _validate_pruning_amount(n, size)
        return n


class RandomUnstructured(_ByAmount):
    """Prunes entries at random."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        n = self._count(t.nelement())
        mask = default_mask.clone(memory_format=flambeau.contiguous_format)
        if n != 0:
            lowest = flambeau.topk(flambeau.rand_like(t).view(-1), k=n)
            mask.view(-1)[lowest.indices] = 0
        return mask

    @classmethod
    def apply(cls, module, name, amount):
        return super().apply(module, name, amount=amount)


class L1Unstructured(_ByAmount):
    """Prunes the entries of least absolute value."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        n = self._count(t.nelement())
        mask = default_mask.clone(memory_format=flambeau.contiguous_format)
        if n != 0:
            lowest = flambeau.topk(flambeau.abs(t).view(-1), k=n, largest=False)
            mask.view(-1)[lowest.indices] = 0
        return mask

    @classmethod
    def apply(cls, module, name, amount, importance_scores=None):
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


def _keep_channels(t, dim, kept):
    """A mask of ones in the channels `kept` of `dim`."""
    mask = flambeau.zeros_like(t)
    where = [slice(None)] * t.dim()
    where[dim] = kept
    mask[tuple(where)] = 1
    return mask


class RandomStructured(_ByAmount):
    """Prunes channels along `dim` at random."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount, dim=-1):
        super().__init__(amount)
        self.dim = dim

    def compute_mask(self, t, default_mask):
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        channels = t.shape[self.dim]
        n = self._count(channels)
        if n == 0:
            return default_mask
        prob = flambeau.rand(channels)
        threshold = flambeau.kthvalue(prob, k=n).values
        mask = _keep_channels(t, self.dim, prob > threshold)
        return mask * default_mask.to(dtype=mask.dtype)

    @classmethod
    def apply(cls, module, name, amount, dim=-1):
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_ByAmount):
    """Prunes the channels along `dim` with the least n-norm."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount, n, dim=-1):
        super().__init__(amount)
        self.n = n
        self.dim = dim

    def compute_mask(self, t, default_mask):
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        channels = t.shape[self.dim]
        n_pruned = self._count(channels)
        if n_pruned == 0:
            return default_mask
        norm = _compute_norm(t, self.n, self.dim)
        kept = flambeau.topk(norm, k=channels - n_pruned, largest=True)
        mask = _keep_channels(t, self.dim, kept.indices)
        return mask * default_mask.to(dtype=mask.dtype)

    @classmethod
    def apply(cls, module, name, amount, n, dim, importance_scores=None):
        return super().apply(module, name, amount=amount, n=n, dim=dim,
                             importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """Prunes by a given mask."""

    PRUNING_TYPE = "global"

    def __init__(self, mask):
        self.mask = mask

    def compute_mask(self, t, default_mask):
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} "
                f"must match self.mask shape {self.mask.shape}")
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module, name, mask):
        return super().apply(module, name, mask=mask)


# ------------------------------------------------------------------ the functions

def identity(module, name):
    """Give a parameter a mask of ones."""
    Identity.apply(module, name)
    return module


def random_unstructured(module, name, amount):
    """Prune `amount` entries of a parameter at random.

    Example:
        >>> from flambeau.nn.utils import prune
        >>> layer = prune.random_unstructured(nn.Linear(2, 3), "weight", amount=1)
        >>> int((layer.weight_mask == 0).sum())
        1
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module, name, amount, importance_scores=None):
    """Prune the `amount` entries of least absolute value."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module, name, amount, dim):
    """Prune `amount` channels along `dim` at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module, name, amount, n, dim, importance_scores=None):
    """Prune the `amount` channels along `dim` of least n-norm."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def global_unstructured(parameters, pruning_method, importance_scores=None, **kwargs):
    """Prune pairs (module, name) together, with one unstructured method for all entries."""
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    importance_scores = {} if importance_scores is None else importance_scores
    if not isinstance(importance_scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    parameters = list(parameters)
    scores = [importance_scores.get((module, name), getattr(module, name)) for module,
              name in parameters]
    masks = [getattr(module, name + "_mask", flambeau.ones_like(getattr(module, name))) for module,
             name in parameters]
    container = PruningContainer()
    container._tensor_name = "temp"
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    container.add_pruning_method(method)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for '
            f"the `pruning_method`. Found method {pruning_method} of type {method.PRUNING_TYPE}")
    joined = [parameters_to_vector(tensors) for tensors in (scores, masks)]
    final_mask = container.compute_mask(*joined)
    start = 0
    for module, name in parameters:
        param = getattr(module, name)
        stop = start + param.numel()
        custom_from_mask(module, name, mask=final_mask[start:stop].view_as(param))
        start = stop


def custom_from_mask(module, name, mask):
    """Prune a parameter by a given mask."""
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module, name):
    """Make the pruned tensor the parameter, for good."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(
        f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module) -> bool:
    """Whether a module, or one below it, is pruned."""
    return any(isinstance(hook, BasePruningMethod) for _, submodule in module.named_modules()
               for hook in submodule._forward_pre_hooks.values())


# ------------------------------------------------------------------ checks

def _validate_pruning_amount_init(amount):
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if (isinstance(amount, numbers.Integral) and amount < 0) or (
        not isinstance(amount, numbers.Integral) and not 0.0 <= float(amount) <= 1.0):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] "
                         "or a non-negative integer")


def _validate_pruning_amount(amount, tensor_size):
    if isinstance(amount, numbers.Integral) and amount > tensor_size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to "
                         f"prune={tensor_size}")


def _validate_structured_pruning(t):
    if len(t.shape) <= 1:
        raise ValueError("Structured pruning can only be applied to multidimensional tensors. "
                         f"Found tensor of shape {t.shape} with {len(t.shape)} dims")


def _compute_nparams_toprune(amount, tensor_size):
    return amount if isinstance(amount, numbers.Integral) else round(amount * tensor_size)


def _validate_pruning_dim(t, dim):
    if dim >= t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _compute_norm(t, n, dim):
    """The n-norm of each channel along `dim`."""
    others = [d for d in range(t.dim()) if d != dim % t.dim()]
    return flambeau.norm(t, p=n, dim=others)

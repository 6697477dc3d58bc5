"""`GradScaler`: keep small gradients of float16 from vanishing."""
from __future__ import annotations

import inspect
import warnings
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum
from typing import Any

import flambeau
from flambeau import Tensor


class OptState(Enum):
    """Where an optimizer stands between two calls of `update`."""
    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class _MultiDeviceReplicator:
    """A tensor, copied to each device that asks for it."""

    def __init__(self, master_tensor: Tensor):
        self.master = master_tensor
        self._per_device_tensors: dict[Any, Tensor] = {}

    def get(self, device: Any) -> Tensor:
        """The tensor on a device."""
        if device not in self._per_device_tensors:
            self._per_device_tensors[device] = self.master.to(device=device, copy=True)
        return self._per_device_tensors[device]


class GradScaler:
    """Multiplies the loss before the backward pass, and divides the gradients before the step.

    Steps whose gradients overflow are left out, and the scale shrinks by `backoff_factor`; after
    `growth_interval` steps in a row without that it grows by `growth_factor`.

    >>> weight = flambeau.nn.Parameter(flambeau.ones(2))
    >>> optimizer = flambeau.optim.SGD([weight], lr=0.5)
    >>> scaler = GradScaler("cpu", init_scale=1024.0)
    >>> scaler.scale(weight.sum()).backward()
    >>> weight.grad
    tensor([1024., 1024.])
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> weight.data
    tensor([0.5000, 0.5000])

    Micikevicius et al., "Mixed Precision Training", 2018, https://arxiv.org/abs/1710.03740.
    """

    def __init__(self, device: str = "cuda", init_scale: float = 2.0 ** 16,
                 growth_factor: float = 2.0, backoff_factor: float = 0.5,
                 growth_interval: int = 2000, enabled: bool = True):
        self._device = device
        self._enabled = enabled
        if device == "cuda" and enabled:
            warnings.warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  "
                          "Disabling.", stacklevel=2)
            self._enabled = False
        if not self._enabled:
            return
        assert growth_factor > 1.0, "The growth factor must be > 1.0."
        assert backoff_factor < 1.0, "The backoff factor must be < 1.0."
        self._init_scale = init_scale
        self._scale: Tensor | None = None       # made by the first `scale`
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0           # steps since the scale last changed
        self._growth_tracker: Tensor | None = None
        self._per_optimizer_states: Any = defaultdict(_refresh_per_optimizer_state)

    def _check_scale_growth_tracker(self, funcname: str) -> tuple[Tensor, Tensor]:
        for name in ("_scale", "_growth_tracker"):
            assert getattr(self, name) is not None, (
                f"Attempted {funcname} but {name} is None.  This may indicate your script did not "
                "use scaler.scale(loss or outputs) earlier in the iteration.")
        return self._scale, self._growth_tracker

    def _lazy_init_scale_growth_tracker(self, dev: Any) -> None:
        """Make the tensors that hold the scale and the number of steps since it changed."""
        self._scale = flambeau.full((), self._init_scale, dtype=flambeau.float32, device=dev)
        self._growth_tracker = flambeau.full((), self._init_growth_tracker, dtype=flambeau.int32,
                                             device=dev)

    def scale(self, outputs: Any) -> Any:
        """A tensor, or each of nested iterables of tensors, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            if self._scale is None:
                self._lazy_init_scale_growth_tracker(outputs.device)
            return outputs * self._scale
        if isinstance(outputs, Iterable):
            scaled = map(self.scale, outputs)
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def _unscale_grads_(self, optimizer: Any, inv_scale: Tensor, found_inf: Tensor,
                        allow_fp16: bool) -> dict[Any, Tensor]:
        grads: dict[Any, list[Tensor]] = {}         # by device and dtype
        found: dict[Any, Tensor] = {}
        with flambeau.no_grad():
            for group in optimizer.param_groups:
                for param in group["params"]:
                    grad = param.grad
                    if grad is None:
                        continue
                    if not allow_fp16 and grad.dtype is flambeau.float16:
                        raise ValueError("Attempting to unscale FP16 gradients.")
                    if grad.is_sparse:
                        if grad.dtype is flambeau.float16:      # sums may overflow
                            param.grad = grad.coalesce()
                        grad = param.grad._values()
                    grads.setdefault((grad.device, grad.dtype), []).append(grad)
            for (device, _), alike in grads.items():
                if device not in found:
                    found[device] = found_inf.clone()
                flambeau._amp_foreach_non_finite_check_and_unscale_(
                    alike, found[device], inv_scale)
        return found

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients by the scale, once a step, e.g. to clip them before `step`.

        >>> scaler.unscale_(optimizer)                                        # doctest: +SKIP
        >>> flambeau.nn.utils.clip_grad_norm_(model.parameters(), 1.0)        # doctest: +SKIP
        """
        if not self._enabled:
            return
        scale, _ = self._check_scale_growth_tracker("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the "
                               "last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        inverse = scale.double().reciprocal().float()
        state["found_inf_per_device"] = self._unscale_grads_(
            optimizer, inverse, flambeau.zeros((), dtype=flambeau.float32), False)
        state["stage"] = OptState.UNSCALED

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """`optimizer.step(*args, **kwargs)` with unscaled gradients, unless one overflowed."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scale_growth_tracker("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            result = self._let_step_unscale(optimizer, state, args, kwargs)
        else:
            if state["stage"] is OptState.READY:
                self.unscale_(optimizer)
            assert state["found_inf_per_device"], "No inf checks were recorded for this optimizer."
            result = self._maybe_opt_step(optimizer, state, *args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _maybe_opt_step(self, optimizer: Any, optimizer_state: dict[str, Any], *args: Any,
                        **kwargs: Any) -> Any:
        """Take the step, unless a gradient overflowed."""
        if any(found.item() for found in optimizer_state["found_inf_per_device"].values()):
            return None
        return optimizer.step(*args, **kwargs)

    def _let_step_unscale(self, optimizer: Any, state: dict[str, Any], args: Any,
                          kwargs: dict[str, Any]) -> Any:
        """The step of an optimizer that divides gradients itself: it finds what it needs in its
        attributes `grad_scale` and `found_inf`."""
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            warnings.warn("GradScaler is going to stop passing itself as a keyword argument to the "
                          "passed optimizer. In the near future GradScaler registers `grad_scale: "
                          "Tensor` and `found_inf: Tensor` to the passed optimizer and let the "
                          "optimizer use them directly.", FutureWarning, stacklevel=3)
            return optimizer.step(*args, **kwargs, grad_scaler=self)
        if state["stage"] is OptState.READY:
            self._check_inf_per_device(optimizer)
        unscaled = state["stage"] is OptState.UNSCALED
        optimizer.grad_scale = None if unscaled else (
            self._get_scale_async() * getattr(optimizer, "grad_scale", 1))
        optimizer.found_inf = sum(state["found_inf_per_device"].values())
        result = optimizer.step(*args, **kwargs)
        del optimizer.grad_scale, optimizer.found_inf
        return result

    def _check_inf_per_device(self, optimizer: Any) -> dict[Any, Tensor]:
        """Look for gradients that are not finite, and leave all as they are."""
        found = self._unscale_grads_(optimizer, flambeau.ones(()), flambeau.zeros(()), True)
        self._per_optimizer_states[id(optimizer)]["found_inf_per_device"] = found
        return found

    def _found_inf_per_device(self, optimizer: Any) -> dict[Any, Tensor]:
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Adapt the scale to what the steps since the last call met, or set it."""
        if not self._enabled:
            return
        scale, tracker = self._check_scale_growth_tracker("update")
        if new_scale is not None:
            self._set_scale(scale, new_scale)
        else:
            found = [value for state in self._per_optimizer_states.values()
                     for value in state["found_inf_per_device"].values()]
            assert found, "No inf checks were recorded prior to update."
            flambeau._amp_update_scale_(scale, tracker, sum(found), self._growth_factor,
                                        self._backoff_factor, self._growth_interval)
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

    @staticmethod
    def _set_scale(scale: Tensor, new_scale: Any) -> None:
        if isinstance(new_scale, float):
            scale.fill_(new_scale)
            return
        reason = ("new_scale should be a float or a 1-element torch.cuda.FloatTensor or "
                  "torch.FloatTensor with requires_grad=False.")
        assert new_scale.device.type == scale.device.type, reason
        assert new_scale.numel() == 1 and not new_scale.requires_grad, reason
        scale.copy_(new_scale.reshape(()))

    def _get_scale_async(self) -> Tensor | None:
        return self._scale

    def get_scale(self) -> float:
        """The scale, 1.0 if disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self) -> float:
        """By how much the scale grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set by how much the scale grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """By how much the scale shrinks."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set by how much the scale shrinks."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """After how many steps without overflow the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set after how many steps without overflow the scale grows."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return (self._init_growth_tracker if self._growth_tracker is None
                else int(self._growth_tracker.item()))

    def is_enabled(self) -> bool:
        """Does this scaler do anything?"""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """The scale and what it adapts by; empty if disabled. Ask after `update`."""
        if not self._enabled:
            return {}
        return {"scale": self.get_scale(), "growth_factor": self._growth_factor,
                "backoff_factor": self._backoff_factor, "growth_interval": self._growth_interval,
                "_growth_tracker": self._get_growth_tracker()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from what `state_dict` gave."""
        if not self._enabled:
            return
        if len(state_dict) == 0:
            raise RuntimeError("The source state dict is empty, possibly because it was saved "
                               "from a disabled instance of GradScaler.")
        self._init_scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._scale is not None:
            self._scale.fill_(self._init_scale)
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(self._init_growth_tracker)

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._enabled:
            assert not self._per_optimizer_states, (
                "A GradScaler instance may only be pickled at the beginning of an iteration, or "
                "at the end after scaler.update().")
            state["_init_scale"] = self.get_scale()
            state["_init_growth_tracker"] = self._get_growth_tracker()
            state["_scale"] = state["_growth_tracker"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


__all__ = ["GradScaler", "OptState"]

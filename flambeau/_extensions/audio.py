"""The ops of torchaudio's extension, as `torch.ops.torchaudio.*`."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import flambeau
from flambeau import Tensor
from flambeau._extensions.alignment import forced_align
from flambeau.library import Library

_BLOCK = 64


def _lfilter_core_loop(input_signal_windows: Tensor, a_coeff_flipped: Tensor,
                       padded_output_waveform: Tensor) -> Tensor:
    """Filter with the poles of each channel: `y[t] = x[t] - a[1] y[t-1] - a[2] y[t-2] …`.

    Coefficients have the last first, and the output has its past before it.
    """
    order = a_coeff_flipped.shape[1] - 1
    x, y = input_signal_windows.detach().numpy(), padded_output_waveform.detach().numpy()
    for channel, coefficients in enumerate(a_coeff_flipped.detach().double().numpy()):
        past, result = y[:, channel, :order], y[:, channel, order:]
        result[:] = _recursion(x[:, channel].astype(float), coefficients[::-1], past.astype(float))
    return padded_output_waveform


def _recursion(x: np.ndarray, a: np.ndarray, past: np.ndarray) -> np.ndarray:
    """The recursion along the last axis, a block at a time.

    Inside a block it is a product with a triangular matrix, whose columns are the response to an
    impulse; what came before enters through the first samples.
    """
    order, length = len(a) - 1, x.shape[-1]
    if order == 0 or length == 0:
        return x
    size = max(min(_BLOCK, length), order)
    response = np.zeros(size)
    response[0] = 1.0
    for t in range(1, size):
        k = min(t, order)
        response[t] = -(a[1:k + 1] * response[t - k:t][::-1]).sum()
    lags = np.subtract.outer(np.arange(size), np.arange(size))
    solve = np.where(lags >= 0, response[lags.clip(0)], 0.0).T
    # What sample t of a block takes from past sample j: a[order - j + t], while that is a lag.
    lag = order - np.arange(order)[:, None] + np.arange(size)
    carry = np.where(lag <= order, a[lag.clip(max=order)], 0.0)
    y = np.concatenate([past, np.empty_like(x)], -1)
    for start in range(0, length, size):
        block = x[:, start:start + size]
        n = block.shape[-1]
        before = y[:, start:start + order]
        y[:, start + order:start + order + n] = (block - before @ carry[:, :n]) @ solve[:n, :n]
    return y[:, order:]


def _overdrive_core_loop(waveform: Tensor, temp: Tensor, last_in: Tensor, last_out: Tensor,
                         output_waveform: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Half the wave, and three quarters of the distorted one without its slow part."""
    with flambeau.no_grad():
        changes = temp.diff(dim=-1, prepend=last_in[:, None])
        high = _recursion(changes.numpy().astype(float), np.array([1.0, -0.995]),
                          last_out[:, None].numpy().astype(float))
        passed = flambeau.from_numpy(high).to(waveform.dtype)
        output_waveform.copy_(0.5 * waveform + 0.75 * passed)
        if temp.shape[-1]:
            last_in.copy_(temp[:, -1])
            last_out.copy_(passed[:, -1])
    return last_in, last_out, output_waveform


# ---- the loss of transducers --------------------------------------------------------------------

def _rnnt_loss_forward(logits: Tensor, targets: Tensor, logit_lengths: Tensor,
                       target_lengths: Tensor, blank: int, clamp: float, fused_log_softmax: bool
                       ) -> tuple[Tensor, Tensor]:
    """The loss of each sequence, and its gradient with respect to `logits`."""
    _check_transducer(logits, targets, logit_lengths, target_lengths, blank)
    with flambeau.enable_grad():
        x = logits.detach().requires_grad_()
        exact = x.double()
        costs = _transducer_costs(exact.log_softmax(-1) if fused_log_softmax else exact,
                                  targets, logit_lengths.long(), target_lengths.long(), blank)
        gradient, = flambeau.autograd.grad(costs.sum(), x)
    if clamp > 0:
        gradient = gradient.clamp(-clamp, clamp)
    return costs.detach().to(logits.dtype), gradient


def _transducer_costs(log_probs: Tensor, targets: Tensor, frames: Tensor, labels: Tensor,
                      blank: int) -> Tensor:
    """Minus the logarithm of the probability of the targets, over all alignments.

    A row of the lattice follows from the one before: along the labels it is a cumulative sum of
    probabilities, each scaled by the labels emitted up to there.
    """
    batch = flambeau.arange(len(log_probs))
    skip = log_probs[..., blank]
    index = targets.long()[:, None, :, None].expand(-1, log_probs.shape[1], -1, -1)
    emit = log_probs[:, :, :-1].gather(3, index)[..., 0]
    emitted = flambeau.nn.functional.pad(emit.cumsum(2), [1, 0])
    row = emitted[:, 0]
    rows = [row]
    for t in range(1, log_probs.shape[1]):
        row = (row + skip[:, t - 1] - emitted[:, t]).logcumsumexp(1) + emitted[:, t]
        rows.append(row)
    lattice = flambeau.stack(rows, 1)
    last = batch, frames - 1, labels
    return -(lattice[last] + skip[last])


def _check_transducer(logits: Tensor, targets: Tensor, logit_lengths: Tensor,
                      target_lengths: Tensor, blank: int) -> None:
    if not logits.is_floating_point():
        raise RuntimeError("logits must be float32 or float16 (half) type")
    integers = {"targets": targets, "logit_lengths": logit_lengths,
                "target_lengths": target_lengths}
    for (name, tensor), ndim in zip({"logits": logits, **integers}.items(), (4, 2, 1, 1)):
        if tensor.ndim != ndim:
            raise RuntimeError(f"{name} must be {ndim}-D")
        if len(tensor) != len(logits):
            raise RuntimeError(f"batch dimension mismatch between logits and {name}")
        if name in integers and tensor.dtype != flambeau.int32:
            raise RuntimeError(f"{name} must be int32 type")
    if not 0 <= blank < logits.shape[-1]:
        raise RuntimeError("blank must be within [0, logits.shape[-1])")
    if len(logits) and logits.shape[1] != int(logit_lengths.max()):
        raise RuntimeError("input length mismatch")
    if len(logits) and logits.shape[2] != int(target_lengths.max()) + 1:
        raise RuntimeError("output length mismatch")
    if targets.shape[1] + 1 < logits.shape[2]:
        raise RuntimeError("targets are shorter than target_lengths says")


_OPS: dict[str, Callable[..., Any]] = {
    "_lfilter_core_loop(Tensor input_signal_windows, Tensor a_coeff_flipped, "
    "Tensor(a!) padded_output_waveform) -> Tensor(a!)": _lfilter_core_loop,
    "_overdrive_core_loop(Tensor waveform, Tensor temp, Tensor(a!) last_in, Tensor(b!) last_out, "
    "Tensor(c!) output_waveform) -> (Tensor(a!), Tensor(b!), Tensor(c!))": _overdrive_core_loop,
    "rnnt_loss_forward(Tensor logits, Tensor targets, Tensor logit_lengths, Tensor target_lengths, "
    "int blank, float clamp, bool fused_log_softmax) -> (Tensor, Tensor)": _rnnt_loss_forward,
    "forced_align(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, "
    "int blank) -> (Tensor, Tensor)": forced_align,
}

_library = Library("torchaudio", "DEF")
for _schema, _function in _OPS.items():
    _library.impl(_library.define(_schema), _function, "CompositeImplicitAutograd")

_facts = Library("_torchaudio", "DEF")
_facts.impl(_facts.define("is_align_available() -> bool"), lambda: True,
            "CompositeImplicitAutograd")
_facts.impl(_facts.define("cuda_version() -> int?"), lambda: None, "CompositeImplicitAutograd")

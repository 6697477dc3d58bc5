"""The likeliest alignment of a sequence of labels with frames: torchaudio's `forced_align`."""
from __future__ import annotations

import numpy as np

import flambeau
from flambeau import Tensor


def forced_align(log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor,
                 blank: int) -> tuple[Tensor, Tensor]:
    """The label of each frame `(1, frames)` on the likeliest path of CTC, and `log_probs`."""
    _check(log_probs, targets, input_lengths, target_lengths, blank)
    frames, labels = log_probs.detach()[0].numpy(), targets.detach()[0].numpy()
    repeats = int((labels[1:] == labels[:-1]).sum())
    if len(frames) < len(labels) + repeats:
        raise RuntimeError("targets length is too long for CTC. Found log_probs length: "
                           f"{len(frames)}, targets length: {len(labels)}, and number of repeats: "
                           f"{repeats}")
    states = np.full(2 * len(labels) + 1, blank, labels.dtype)
    states[1::2] = labels
    path = states[_best_path(frames[:, states].astype(float), states, blank)]
    return flambeau.from_numpy(path[None].copy()).to(targets.dtype), log_probs


def _best_path(scores: np.ndarray, states: np.ndarray, blank: int) -> np.ndarray:
    """The state of each frame; from a state one goes on by 0, by 1, or over a blank by 2."""
    count = len(states)
    may_skip = np.zeros(count, bool)
    may_skip[2:] = (states[2:] != blank) & (states[2:] != states[:-2])
    best = np.full(count, -np.inf)
    best[:2] = scores[0, :2]
    steps = np.zeros(scores.shape, np.int8)
    for t in range(1, len(scores)):
        options = np.full((3, count), -np.inf)
        options[0] = best
        options[1, 1:] = best[:-1]
        options[2, 2:] = np.where(may_skip[2:], best[:-2], -np.inf)
        steps[t] = options.argmax(0)
        best = options.max(0) + scores[t]
    at = count - 1 if count == 1 or best[-1] > best[-2] else count - 2
    path = np.empty(len(scores), np.int64)
    for t in range(len(scores) - 1, -1, -1):
        path[t] = at
        at -= steps[t, at]
    return path


def _check(log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor,
           blank: int) -> None:
    if not log_probs.is_floating_point():
        raise RuntimeError("log_probs must be float64, float32 or float16 (half) type")
    if targets.dtype not in (flambeau.int32, flambeau.int64):
        raise RuntimeError("targets must be int32 or int64 type")
    for name, tensor, ndim in (("log_probs", log_probs, 3), ("targets", targets, 2),
                               ("input_lengths", input_lengths, 1),
                               ("target_lengths", target_lengths, 1)):
        if tensor.ndim != ndim:
            raise RuntimeError(f"{name} must be {ndim}-D")
    for name, tensor in (("log_probs", log_probs), ("targets", targets)):
        if len(tensor) != 1:
            raise RuntimeError(f"The batch dimension for {name} must be 1 at the current version.")
    if not 0 <= blank < log_probs.shape[-1]:
        raise RuntimeError("blank must be within [0, num classes)")
    if log_probs.shape[1] != int(input_lengths.max()):
        raise RuntimeError("input length mismatch")
    if targets.shape[1] != int(target_lengths.max()):
        raise RuntimeError("target length mismatch")

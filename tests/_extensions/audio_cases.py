"""Calls of torchaudio's ops, for `test_audio.py` and for what records PyTorch's answers."""

CALLS = [
    "ops._lfilter_core_loop(x, a, past)",
    "ops._lfilter_core_loop(x.float(), a.float(), past.float())",
    "ops._lfilter_core_loop(x[..., :2].contiguous(), a, past[..., :5].contiguous())",
    "ops._overdrive_core_loop(x[0], x[0] ** 3, x[0, :, 0] * 0, x[0, :, 1] * 0, x[0] * 0)",
    *(f"ops.rnnt_loss_forward({logits}, targets, frames, labels, {blank}, {clamp}, {fused})"
      for logits, fused in (("logits", True), ("logits.log_softmax(-1)", False))
      for blank, clamp in ((5, -1.0), (0, 0.05))),
    *(f"ops.forced_align(log_probs, torch.tensor([{labels}]), length, torch.tensor([{n}]), 0)"
      for labels, n in ((([1, 2, 2, 3]), 4), ([1], 1), ([4, 4, 4], 3))),
    # what is wrong
    "ops.forced_align(log_probs[0], targets, frames, labels, 0)",
    "ops.forced_align(log_probs.repeat(2, 1, 1), targets, frames, labels, 0)",
    "ops.forced_align(log_probs, targets[:1], frames[:1], labels[:1], 0)",
    "ops.forced_align(log_probs, targets[:1], length, labels[1:], 0)",
    "ops.forced_align(log_probs, targets[:1], length, labels[:1], 9)",
    "ops.forced_align(log_probs, targets[:1].float(), length, labels[:1], 0)",
    "ops.forced_align(log_probs[:, :3], targets.new_ones(1, 3), length - 9, labels[:1], 0)",
    "ops.rnnt_loss_forward(logits, targets.long(), frames, labels, 0, -1.0, True)",
    "ops.rnnt_loss_forward(logits, targets, frames - 1, labels, 0, -1.0, True)",
    "ops.rnnt_loss_forward(logits, targets, frames, labels - 1, 0, -1.0, True)",
    "ops.rnnt_loss_forward(logits, targets, frames, labels, 9, -1.0, True)",
    "ops.rnnt_loss_forward(logits, targets[:1], frames, labels, 0, -1.0, True)",
    "ops.rnnt_loss_forward(logits[0], targets, frames, labels, 0, -1.0, True)",
]


def inputs(torch):
    """The names in the calls."""
    def wave(*shape):
        n = torch.arange(torch.Size(shape).numel(), dtype=torch.float64)
        return (n * n * 0.37 + n).cos().view(shape)

    return {
        "torch": torch, "x": wave(2, 2, 150),
        "a": torch.tensor([[0.1, -0.2, 0.3, 1], [0.05, 0.1, -0.9, 1]]).double(),
        "past": torch.nn.functional.pad(wave(2, 2, 3), (0, 150)),
        "logits": wave(2, 5, 4, 6).float(),
        "targets": torch.tensor([[1, 2, 3], [3, 3, 2]], dtype=torch.int32),
        "frames": torch.tensor([5, 4], dtype=torch.int32),
        "labels": torch.tensor([3, 2], dtype=torch.int32),
        "log_probs": wave(1, 12, 5).log_softmax(-1), "length": torch.tensor([12]),
    }


def evaluate(torch, call, given):
    """The results of a call as lists, or the error's type and message."""
    try:
        results = eval(call, {"ops": torch.ops.torchaudio, **given})
    except Exception as error:
        # torchaudio puts the place in its source before the message.
        return {"raises": [type(error).__name__, str(error).splitlines()[0].split(".cpp")[-1]]}
    results = results if isinstance(results, tuple) else (results,)
    return {"values": [[str(r.dtype), list(r.shape),
                        [float(f"{value:.9g}") for value in r.flatten().tolist()]]
                       for r in results]}

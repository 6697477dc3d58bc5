"""Autograd functions that belong to a single layer."""

from __future__ import annotations

import flambeau


def _window_sums(values, before, after):
    """Sums of each channel with the `before` and `after` channels next to it."""
    channels = values.size(1)
    total = flambeau.nn.functional.pad(values, (0, 0, 0, 0, before, after)).cumsum(1)
    total = flambeau.nn.functional.pad(total, (0, 0, 0, 0, 1, 0))
    width = before + after + 1
    return total[:, width:width + channels] - total[:, :channels]


class CrossMapLRN2d(flambeau.autograd.Function):
    """y = x · s^-β with s = k + α/n · (sum of squares over n channels)."""

    @staticmethod
    def forward(ctx, input, size, alpha=1e-4, beta=0.75, k=1):
        if input.dim() != 4:
            raise ValueError(
                f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead."
            )
        ctx.size, ctx.alpha, ctx.beta = size, alpha, beta
        ctx.before = int((size - 1) / 2 + 1) - 1
        squares = _window_sums(input.pow(2), ctx.before, ctx.before)
        scale = squares * (alpha / size) + k
        output = input * scale.pow(-beta)
        ctx.save_for_backward(input, output, scale)
        return output

    @staticmethod
    def backward(ctx, grad_output):
        input, output, scale = ctx.saved_tensors
        direct = grad_output * scale.pow(-ctx.beta)
        after = ctx.size - (ctx.size - ctx.before)
        ratio = _window_sums(grad_output * output / scale, ctx.size - 1 - after, after)
        through_scale = -2 * ctx.alpha * ctx.beta / ctx.size * input * ratio
        return direct + through_scale, None, None, None, None

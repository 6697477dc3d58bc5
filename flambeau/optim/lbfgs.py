"""Limited-memory BFGS."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import flambeau
from flambeau import Tensor
from flambeau.optim._support import ParamsT
from flambeau.optim.optimizer import Optimizer
from flambeau.optim.rule import check_lr

__all__ = ["LBFGS"]


class LBFGS(Optimizer):
    r"""Limited-memory BFGS: Newton's method with a Hessian from the last gradients.

    The direction is :math:`d = -H g`, where :math:`H` is built from the last `history_size`
    pairs :math:`s_k = \theta_{k+1} - \theta_k` and :math:`y_k = g_{k+1} - g_k` by the two-loop
    recursion, starting from :math:`\frac{y^T s}{y^T y} I`. One `step` takes up to `max_iter`
    such directions, each of length `lr` or as the line search finds. Nocedal and Wright,
    *Numerical optimization*, algorithms 7.4, 3.5 and 3.6.

    All parameters form one group. It keeps `2 * history_size` vectors of the size of all
    parameters together.

    Args:
        params: the parameters.
        lr: length of a step, or the line search's first guess.
        max_iter: most iterations in a `step`.
        max_eval: most evaluations of the closure in a `step`; by default `max_iter * 5 // 4`.
        tolerance_grad: stop if no entry of the gradient is larger.
        tolerance_change: stop if neither the loss nor a parameter changes by more.
        history_size: how many pairs to keep.
        line_search_fn: `"strong_wolfe"` or None.

    Example::

        >>> import flambeau as torch
        >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = torch.optim.LBFGS([w], line_search_fn="strong_wolfe")
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     loss = ((w - 3) ** 2).sum()
        ...     loss.backward()
        ...     return loss
        >>> optimizer.step(closure)
        tensor(29., grad_fn=<SumBackward0>)
        >>> w.detach().round()
        tensor([3., 3.])
    """

    def __init__(self, params: ParamsT, lr: float | Tensor = 1, max_iter: int = 20,
                 max_eval: int | None = None, tolerance_grad: float = 1e-7,
                 tolerance_change: float = 1e-9, history_size: int = 100,
                 line_search_fn: str | None = None) -> None:
        check_lr(lr)
        if max_eval is None:
            max_eval = max_iter * 5 // 4
        super().__init__(params, {
            "lr": lr, "max_iter": max_iter, "max_eval": max_eval,
            "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change,
            "history_size": history_size, "line_search_fn": line_search_fn})
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._params = self.param_groups[0]["params"]

    @flambeau.no_grad()
    def step(self, closure: Callable[[], Any]) -> Any:
        """Minimise for up to `max_iter` iterations.

        Args:
            closure: clears the gradients, computes the loss and its gradients, returns the loss.

        Returns:
            The loss before the step.
        """
        closure = flambeau.enable_grad()(closure)
        group = self.param_groups[0]
        lr, search = group["lr"], group["line_search_fn"]
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        is_first = state.setdefault("n_iter", 0) == 0

        first_loss = closure()
        loss = float(_number(first_loss))
        state["func_evals"] += 1
        evals = 1
        grad = self._flat_grad()
        if _largest(grad) <= group["tolerance_grad"]:
            return first_loss

        for n in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            direction = self._direction(grad, state, group["history_size"])
            state["prev_flat_grad"], state["prev_loss"] = grad.clone(), loss
            previous = loss
            length = lr
            if state["n_iter"] == 1:
                length = min(1.0, 1.0 / grad.abs().sum()) * lr
            state["d"], state["t"] = direction, length
            slope = grad.dot(direction).item()
            if slope > -group["tolerance_change"]:
                break

            used = 0
            if search is not None:
                if search != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                line = _Line(self, closure, direction)
                point, used = _search(line, _Point(0.0, loss, grad, slope), _number(length),
                                      _largest(direction), most=group["max_eval"] - evals)
                loss, grad, length = point.loss, point.grad, point.at
                self._move(direction, length)
            else:
                self._move(direction, length)
                if n != group["max_iter"]:   # after the last step nobody asks for the gradient
                    loss, grad, used = float(_number(closure())), self._flat_grad(), 1
            state["t"] = length
            evals += used
            state["func_evals"] += used
            if (evals >= group["max_eval"] or _largest(grad) <= group["tolerance_grad"]
                    or _largest(direction * length) <= group["tolerance_change"]
                    or abs(loss - previous) < group["tolerance_change"]):
                break
        if is_first:                # checkpoints list the entries in this order
            state.update({name: state.pop(name) for name in (
                "d", "t", "old_dirs", "old_stps", "ro", "H_diag", "prev_flat_grad", "prev_loss")})
        return first_loss

    def _direction(self, grad: Tensor, state: dict[str, Any], history_size: int) -> Tensor:
        """`-H @ grad`, after taking the last step into the history."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return -grad
        state.setdefault("al", [None] * history_size)
        ys, ss, weights = state["old_dirs"], state["old_stps"], state["ro"]
        y, s = grad - state["prev_flat_grad"], state["d"] * state["t"]
        curvature = y.dot(s)
        if curvature > 1e-10:
            if len(ys) == history_size:
                for history in (ys, ss, weights):
                    history.pop(0)
            ys.append(y)
            ss.append(s)
            weights.append(1.0 / curvature)
            state["H_diag"] = curvature / y.dot(y)
        direction = -grad
        shares = state["al"]                    # a checkpoint keeps the last ones
        for i in reversed(range(len(ys))):
            shares[i] = ss[i].dot(direction) * weights[i]
            direction = direction - shares[i] * ys[i]
        direction = direction * state["H_diag"]
        for y, s, weight, share in zip(ys, ss, weights, shares, strict=False):
            direction = direction + (share - y.dot(direction) * weight) * s
        return direction

    def _flat_grad(self) -> Tensor:
        """All gradients as one vector, complex ones as pairs of reals."""
        return flambeau.cat([_flat(flambeau.zeros_like(p) if p.grad is None else p.grad)
                             for p in self._params])

    def _move(self, direction: Tensor, length: float | Tensor) -> None:
        """Add `length * direction` to the parameters."""
        start = 0
        for p in self._params:
            real = flambeau.view_as_real(p) if p.is_complex() else p
            end = start + real.numel()
            real.add_(direction[start:end].view_as(real), alpha=_number(length))
            start = end


def _flat(grad: Tensor) -> Tensor:
    if grad.is_sparse:
        grad = grad.to_dense()
    if grad.is_complex():
        grad = flambeau.view_as_real(grad)
    return grad.reshape(-1)


def _number(x: float | Tensor) -> float:
    return x.item() if isinstance(x, Tensor) else x


def _largest(x: Tensor) -> float:
    return x.abs().max().item()


class _Point(NamedTuple):
    """A point on the search line: how far along, and loss, gradient and slope there."""

    at: float
    loss: float
    grad: Tensor
    slope: float


class _Line:
    """The loss as a function of how far the parameters move along a direction."""

    def __init__(self, optimizer: LBFGS, closure: Callable[[], Any], direction: Tensor) -> None:
        self.optimizer, self.closure, self.direction = optimizer, closure, direction
        self.start = [p.clone() for p in optimizer._params]

    def __call__(self, at: float) -> _Point:
        self.optimizer._move(self.direction, at)
        loss = float(_number(self.closure()))
        grad = self.optimizer._flat_grad()
        for p, start in zip(self.optimizer._params, self.start, strict=True):
            p.copy_(start)
        return _Point(at, loss, grad, grad.dot(self.direction).item())


def _search(line: Callable[[float], _Point], origin: _Point, at: float, scale: float,
            c1: float = 1e-4, c2: float = 0.9, tolerance: float = 1e-9, *,
            most: int) -> tuple[_Point, int]:
    """A point of the line that meets the strong Wolfe conditions, and the evaluations it took.

    The first loop extends an interval until it must hold such a point, the second one shrinks it.
    `scale` is the largest entry of the direction, `most` bounds the evaluations after the first.
    """

    def too_high(point: _Point) -> bool:
        return point.loss > origin.loss + c1 * point.at * origin.slope

    def flat(point: _Point) -> bool:
        return abs(point.slope) <= -c2 * origin.slope

    previous, point = origin, line(at)
    evals = 1
    tries = 0
    while tries < most:
        if too_high(point) or (tries > 1 and point.loss >= previous.loss) or (
                point.slope >= 0 and not flat(point)):
            bracket = [previous, point]
            break
        if flat(point):
            return point, evals
        bounds = point.at + 0.01 * (point.at - previous.at), point.at * 10
        previous, point = point, line(_cubic_minimum(previous, point, bounds))
        evals += 1
        tries += 1
    else:
        bracket = [origin, point]

    stuck = False
    while tries < most:
        low, high = sorted(p.at for p in bracket)
        if (high - low) * scale < tolerance:
            break
        at = _cubic_minimum(bracket[0], bracket[1], (low, high))
        margin = 0.1 * (high - low)
        if min(high - at, at - low) < margin:   # too near an end: allowed once, then moved inside
            if stuck or at >= high or at <= low:
                at = high - margin if abs(at - high) < abs(at - low) else low + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        point = line(at)
        evals += 1
        tries += 1
        best = _least(bracket)
        if too_high(point) or point.loss >= bracket[best].loss:
            bracket[1 - best] = point
            continue
        if flat(point):
            return point, evals
        if point.slope * (bracket[1 - best].at - bracket[best].at) >= 0:
            bracket[1 - best] = bracket[best]
        bracket[best] = point
    return bracket[_least(bracket)], evals


def _least(bracket: list[_Point]) -> int:
    """Which of the two points has the least loss: the second one if either is not a number."""
    return 0 if bracket[0].loss <= bracket[1].loss else 1


def _cubic_minimum(a: _Point, b: _Point, bounds: Sequence[float]) -> float:
    """Where the cubic through two points with their slopes is least, within the bounds."""
    low, high = bounds
    if a.at > b.at:
        a, b = b, a
    width = b.at - a.at
    if width == 0:
        return (low + high) / 2
    d1 = a.slope + b.slope - 3 * (b.loss - a.loss) / width
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2
    d2 = square**0.5
    denominator = b.slope - a.slope + 2 * d2
    if denominator == 0:
        return (low + high) / 2
    return min(max(b.at - width * (b.slope + d2 - d1) / denominator, low), high)


def _strong_wolfe(obj_func: Callable[..., tuple[float, Tensor]], x: Any, t: float, d: Tensor,
                  f: float, g: Tensor, gtd: float | Tensor, c1: float = 1e-4, c2: float = 0.9,
                  tolerance_change: float = 1e-9,
                  max_ls: int = 25) -> tuple[float, Tensor, float, int]:
    """Search along a direction `d` from `x`, where the loss is `f`, its gradient `g` and its slope
    `gtd`; `t` is the first step, and `obj_func(x, t, d)` gives loss and gradient after a step.

    Returns:
        Loss, gradient and step where the strong Wolfe conditions hold, and the number of calls.
    """
    def line(at: float) -> _Point:
        loss, grad = obj_func(x, at, d)
        return _Point(at, loss, grad, float(grad.dot(d)))

    point, evals = _search(line, _Point(0.0, f, g, float(gtd)), t, _largest(d), c1, c2,
                           tolerance_change, most=max_ls)
    return point.loss, point.grad, point.at, evals


def _cubic_interpolate(x1: float, f1: float, g1: float, x2: float, f2: float, g2: float,
                       bounds: tuple[float, float] | None = None) -> float:
    """Where the cubic with these values and slopes at two points is least, within the bounds."""
    a, b = (_Point(float(at), float(loss), None, float(slope))
            for at, loss, slope in ((x1, f1, g1), (x2, f2, g2)))
    return _cubic_minimum(a, b, bounds or tuple(sorted((a.at, b.at))))

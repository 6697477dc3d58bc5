"""Optimiser steps over many arrays in one call, in NumPy.

Each function updates lists of arrays in place: entry *i* of every list belongs to parameter *i*.
All arrays of a call share one floating dtype, except `steps`: one 0-d array for each parameter,
which counts its steps and is advanced here. The native twins take the same arguments; they are
asked first, and do nothing unless every array is C-contiguous. `update_arrays` has no twin here:
where it does nothing, the caller does the same array by array with ops.

Small parameters are common, and then the calls cost more than the arithmetic: so numbers are made
0-d arrays once, and `out` is given by position (both save a third of a small ufunc call).
"""

import numpy as np

from flambeau.kernels._extension import native


def sgd_step(params, grads, buffers, lr, momentum, dampening, weight_decay, nesterov, maximize):
    """Step of gradient descent: `buf = momentum*buf + (1 - dampening)*g`, `p -= lr*buf`.

    `buffers` is empty if `momentum` is 0. A parameter's first step, which makes its buffer, is
    not done here.
    """
    if not params or (native is not None and native.sgd_step(
            params, grads, buffers, lr, momentum, dampening, weight_decay, nesterov, maximize)):
        return
    dtype = params[0].dtype
    rate, inertia, fresh, decay = (
        np.array(x, dtype) for x in (lr, momentum, 1 - dampening, weight_decay))
    add, subtract, multiply = np.add, np.subtract, np.multiply
    with np.errstate(all="ignore"):
        for i, p in enumerate(params):
            g = grads[i]
            if maximize:
                g = -g
            if weight_decay:
                g = g + decay * p
            if momentum:
                buf = buffers[i]
                multiply(buf, inertia, buf)
                add(buf, fresh * g if dampening else g, buf)
                g = g + inertia * buf if nesterov else buf
            subtract(p, multiply(g, rate), p)


def adam_step(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps, lr, beta1, beta2, eps,
              weight_decay, decoupled, maximize):
    """Step of Adam; with `decoupled`, weight decay acts on the parameters alone (AdamW).

    `max_exp_avg_sqs` is empty unless the AMSGrad variant is asked for.
    """
    if not params or (native is not None and native.adam_step(
            params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps, lr, beta1, beta2, eps,
            weight_decay, decoupled, maximize)):
        return
    dtype = params[0].dtype
    rest1, keep2, rest2, small, decay, shrink = (np.array(x, dtype) for x in (
        1 - beta1, beta2, 1 - beta2, eps, weight_decay, 1 - lr * weight_decay))
    add, subtract, multiply = np.add, np.subtract, np.multiply
    known = {}   # the factors of bias correction, by the number of steps
    with np.errstate(all="ignore"):
        for i, p in enumerate(params):
            g, m, v, step = grads[i], exp_avgs[i], exp_avg_sqs[i], steps[i]
            add(step, 1, step)
            t = float(step)
            if t not in known:
                known[t] = (np.array((1 - beta2**t) ** -0.5, dtype),
                            np.array(lr / (1 - beta1**t), dtype))
            correction, rate = known[t]
            if maximize:
                g = -g
            if weight_decay and decoupled:
                multiply(p, shrink, p)
            elif weight_decay:
                g = g + decay * p
            work = np.empty_like(p)
            subtract(g, m, work)
            multiply(work, rest1, work)
            add(m, work, m)
            multiply(v, keep2, v)
            multiply(g, g, work)
            multiply(work, rest2, work)
            add(v, work, v)
            if max_exp_avg_sqs:
                v = np.maximum(max_exp_avg_sqs[i], v, out=max_exp_avg_sqs[i])
            np.sqrt(v, work)
            multiply(work, correction, work)
            add(work, small, work)
            np.divide(m, work, work)
            multiply(work, rate, work)
            subtract(p, work, p)


def update_arrays(rule, params, grads, kept=(), steps=(), numbers=((),), weight_decay=0, shrink=1,
                  maximize=False):
    """Apply an elementwise rule to all arrays, if it is compiled and they lie densely.

    Args:
        rule: its name, such as `"rmsprop"` or `"lerp"`.
        params: what is updated in place.
        grads: the gradients, or the other operands of a rule that has two.
        kept: for each thing that the rule keeps, a list of arrays that are updated in place.
        steps: counters of steps, which are advanced.
        numbers: the rule's numbers for each parameter, or one tuple of them for all.
        weight_decay: times the parameter, is added to the gradient.
        shrink: the factor of the parameter before the step.
        maximize: with the gradient's sign turned.

    Returns:
        Whether it did.
    """
    return native is not None and native.update_arrays(
        rule, params, grads, kept, steps, numbers, weight_decay, shrink, maximize)


def all_finite(arrays):
    """Is every element of dense arrays of one floating type finite? None: nobody has looked."""
    return None if native is None else native.all_finite(arrays)

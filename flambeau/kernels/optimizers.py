"""Optimiser steps over many arrays in one call, in NumPy.

Each function updates lists of arrays in place: entry *i* of every list belongs to parameter *i*.
All arrays of a call share one floating dtype, except `steps`: one 0-d array for each parameter,
which counts its steps and is advanced here. Native twins take the same arguments, and may ask in
addition that every array is C-contiguous.

Small parameters are first joined into one flat array, so that twenty of them take as many NumPy
calls as one does; large ones are treated one by one, for the sake of memory.
"""

from itertools import groupby

import numpy as np

JOIN_BELOW = 1 << 14   # elements; above, the copies cost more than the calls that they save


def sgd_step(params, grads, buffers, lr, momentum, dampening, weight_decay, nesterov, maximize):
    """Step of gradient descent: `buf = momentum*buf + (1 - dampening)*g`, `p -= lr*buf`.

    `buffers` is empty if `momentum` is 0. A parameter's first step, which makes its buffer, is
    not done here.
    """
    with np.errstate(all="ignore"):
        for batch in _batches(params):
            g = _join(grads, batch)
            if maximize:
                g = -g
            if weight_decay:
                g = g + weight_decay * _join(params, batch)
            if momentum:
                buf = _join(buffers, batch)
                buf *= momentum
                buf += (1 - dampening) * g if dampening else g
                _split(buf, buffers, batch)
                g = g + momentum * buf if nesterov else buf
            _subtract(params, lr * g, batch)


def adam_step(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps, lr, beta1, beta2, eps,
              weight_decay, decoupled, maximize):
    """Step of Adam; with `decoupled`, weight decay acts on the parameters alone (AdamW).

    `max_exp_avg_sqs` is empty unless the AMSGrad variant is asked for.
    """
    for step in steps:
        step += 1
    times = [float(step) for step in steps]
    with np.errstate(all="ignore"):
        for batch in _batches(params, times):
            t = times[batch[0]]
            g = _join(grads, batch)
            m, v = _join(exp_avgs, batch), _join(exp_avg_sqs, batch)
            if maximize:
                g = -g
            if weight_decay and not decoupled:
                g = g + weight_decay * _join(params, batch)
            m += (1 - beta1) * (g - m)
            v *= beta2
            v += (1 - beta2) * (g * g)
            if max_exp_avg_sqs:
                highest = _join(max_exp_avg_sqs, batch)
                np.maximum(highest, v, out=highest)
                _split(highest, max_exp_avg_sqs, batch)
                update = np.sqrt(highest)
            else:
                update = np.sqrt(v)
            update /= (1 - beta2**t) ** 0.5
            update += eps
            np.divide(m, update, out=update)
            update *= lr / (1 - beta1**t)
            if weight_decay and decoupled:
                for i in batch:
                    params[i] *= 1 - lr * weight_decay
            _subtract(params, update, batch)
            _split(m, exp_avgs, batch)
            _split(v, exp_avg_sqs, batch)


def _batches(params, times=None):
    """Lists of indices: a large parameter alone, small ones that agree in `times` together."""
    small = []
    for i, p in enumerate(params):
        if p.size < JOIN_BELOW:
            small.append(i)
        else:
            yield [i]
    if times is None or len(set(times)) == 1:
        if small:
            yield small
        return
    small.sort(key=times.__getitem__)
    for _, batch in groupby(small, key=times.__getitem__):
        yield list(batch)


def _join(arrays, batch):
    """The arrays of a batch as one: the array itself if it is alone, else a flat copy of all."""
    if len(batch) == 1:
        return np.atleast_1d(arrays[batch[0]])
    return np.concatenate([arrays[i].ravel() for i in batch])


def _split(joined, arrays, batch):
    """Write what `_join` made back to the arrays; an array that was alone has it already."""
    if len(batch) == 1:
        return
    start = 0
    for i in batch:
        array = arrays[i]
        end = start + array.size
        array[...] = joined[start:end].reshape(array.shape)
        start = end


def _subtract(params, joined, batch):
    """Subtract from the parameters of a batch what is laid out as `_join` does."""
    start = 0
    for i in batch:
        p = params[i]
        end = start + p.size
        np.subtract(p, joined[start:end].reshape(p.shape) if len(batch) > 1 else joined.reshape(
            p.shape), out=p)
        start = end

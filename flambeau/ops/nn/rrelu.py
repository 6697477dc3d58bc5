"""`rrelu`: a leaky rectifier whose slope is drawn for each element."""
from __future__ import annotations

from typing import Any

import numpy as np

from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import op
from flambeau.kernels.creation.random import rrelu_slopes
from flambeau.kernels.refused import no_kernel, refuse
from flambeau.ops.coercion import as_element
from flambeau.ops.nn.activation import REAL, leaky_relu
from flambeau.ops.node_names import one_node
from flambeau.ops.random.sampling import sampled, sampler

_rrelu_slopes = sampler("rrelu", rrelu_slopes, "Tensor self", "Scalar lower",
                         "Scalar upper")


@one_node(name="RreluWithNoiseBackward0")
def _rrelu(self: Tensor, noise: Tensor | None, lower: Any, upper: Any, training: bool,
           generator: Any) -> Tensor:
    if not training:
        return leaky_relu(self, (lower + upper) / 2).contiguous()
    refuse(self._array, REAL, "rrelu_with_noise_out_cpu")
    if self._array.dtype == np.float16:    # bfloat16 is taken
        raise no_kernel("rrelu_with_noise_out_cpu", self._array.dtype)
    slopes = sampled(_rrelu_slopes, self, generator, lower, upper)
    if noise is not None:
        noise.copy_(slopes)
    return self * slopes


rrelu_with_noise = op(
    "rrelu_with_noise(Tensor self, Tensor(b!) noise, Scalar lower=0.125, "
    "Scalar upper=0.3333333333333333, bool training=False, Generator? generator=None) -> Tensor",
    body=_rrelu, out=False, inplace=True, inplace_node="RreluWithNoiseBackward1",
    namespace="_nn", method=False)


@op("rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, "
    "Generator? generator=None) -> Tensor", inplace=True, inplace_function=True, method=False,
    out=False, inplace_node="RreluWithNoiseBackward1")
def rrelu(self: Tensor, lower: Any, upper: Any, training: bool, generator: Any) -> Tensor:
    """`leaky_relu` with a random slope from U(lower, upper) for each element; their mean when not
    training."""
    lower, upper = (as_element(v, np.dtype(float)) for v in (lower, upper))
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    return _rrelu(self, None, lower, upper, training, generator)

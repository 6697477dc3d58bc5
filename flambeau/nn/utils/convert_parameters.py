"""All parameters as one vector, and back."""

from __future__ import annotations

import flambeau
from flambeau import Tensor


def parameters_to_vector(parameters) -> Tensor:
    """Flatten parameters and join them.

    Example:
        >>> nn.utils.parameters_to_vector(nn.Linear(2, 3).parameters()).shape
        torch.Size([9])
    """
    parameters = list(parameters)
    _check_device(parameters)
    return flambeau.cat([param.view(-1) for param in parameters])


def vector_to_parameters(vec: Tensor, parameters) -> None:
    """Set the data of parameters to the pieces of a vector."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {flambeau.typename(vec)}")
    parameters = list(parameters)
    _check_device(parameters)
    start = 0
    for param in parameters:
        stop = start + param.numel()
        param.data = vec[start:stop].view_as(param).data
        start = stop


def _check_device(parameters):
    if len({param.device for param in parameters}) > 1:
        raise TypeError(
            "Found two parameters on different devices, this is currently not supported.")

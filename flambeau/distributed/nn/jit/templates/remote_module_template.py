"""The forward functions of a remote module, which call that of the module where it is."""
from __future__ import annotations

from typing import Any

from flambeau.futures import Future


def _remote_forward(module_rref: Any, device: str, *args: Any, **kwargs: Any) -> Any:
    """Run the module, at its owner."""
    return module_rref.local_value()(*args, **kwargs)


def forward_async(self: Any, *args: Any, **kwargs: Any) -> Future[Any]:
    """A future of the module's output."""
    from flambeau.distributed import rpc
    return rpc.rpc_async(self.module_rref.owner(), _remote_forward,
                         (self.module_rref, self.device, *args), kwargs)


def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
    """The module's output."""
    from flambeau.distributed import rpc
    return rpc.rpc_sync(self.module_rref.owner(), _remote_forward,
                        (self.module_rref, self.device, *args), kwargs)


_generated_methods = [forward_async, forward]


def get_remote_module_template(enable_moving_cpu_tensors_to_cuda: bool) -> str:
    """The source of these functions for an interface: a text with `{names}` for what
    `instantiator.get_arg_return_types_from_interface` finds. Tensors stay on the CPU, whatever is
    asked for: there are no other devices.

    >>> "def forward(self, {arg_types})" in get_remote_module_template(True)
    True
    """
    return _TEMPLATE


_TEMPLATE = """from typing import *

import torch
import torch.distributed.rpc as rpc
from torch import Tensor
from torch.distributed.rpc import RRef
from torch.futures import Future

{assign_module_interface_cls}


{jit_script_decorator}
def _remote_forward(module_rref: RRef[module_interface_cls], device: str,
                    is_device_map_set: bool, {arg_types}){arrow_and_return_type}:
    return module_rref.local_value().forward({args}, {kwargs})


def forward_async(self, {arg_types}){arrow_and_future_return_type}:
    return rpc.rpc_async(
        self.module_rref.owner(), _remote_forward,
        (self.module_rref, self.device, self.is_device_map_set, {args}), {{{kwargs}}})


def forward(self, {arg_types}){arrow_and_return_type}:
    return forward_async(self, {args}, {kwargs}).wait()


_generated_methods = [forward_async, forward]
"""

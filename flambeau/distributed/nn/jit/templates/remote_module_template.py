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

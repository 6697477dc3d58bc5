"""What PyTorch says of optimizers that can be scripted."""
from __future__ import annotations

import warnings


def _scripted_functional_optimizer_deprecation_warning(stacklevel: int = 0) -> None:
    warnings.warn("`TorchScript` support for functional optimizers is deprecated and will be "
                  "removed in a future PyTorch release. Consider using the `torch.compile` "
                  "optimizer instead.", DeprecationWarning, stacklevel=stacklevel + 2)

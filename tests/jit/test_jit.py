"""torch.jit: wrappers that behave as what they wrap."""
from __future__ import annotations

import pytest

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")

"""What the debug server of a process does when it is asked."""
from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path

from flambeau.distributed.elastic.control_plane import HANDLERS


def _torch_profile(duration: float = 1.0) -> str:
    """A profile of the next seconds, in the format of Chrome's traces."""
    from flambeau.profiler import profile
    with tempfile.TemporaryDirectory() as folder:
        with profile() as found:
            time.sleep(duration)
        path = Path(folder) / "trace.json"
        found.export_chrome_trace(str(path))
        return json.dumps(json.loads(path.read_text()))


HANDLERS["torch_profile"] = _torch_profile

"""What is in streams."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flambeau.utils.data.datapipes._decorator import functional_datapipe
from flambeau.utils.data.datapipes.datapipe import IterDataPipe
from flambeau.utils.data.datapipes.utils.common import StreamWrapper


@functional_datapipe("read_from_stream")
class StreamReaderIterDataPipe(IterDataPipe):
    """Paths, and what their streams give: all at once, or in pieces of `chunk`."""

    def __init__(self, datapipe: Any, chunk: int | None = None):
        self.datapipe, self.chunk = datapipe, chunk

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        for path, stream in self.datapipe:
            while data := stream.read(self.chunk):
                yield path, data
                if self.chunk is None:
                    break
            StreamWrapper.close_streams(stream)


__all__ = ["StreamReaderIterDataPipe"]

"""Steps of pipes that give their elements one after another."""

from flambeau.utils.data.datapipes._iter_steps import *
from flambeau.utils.data.datapipes._iter_steps import __all__ as _steps
from flambeau.utils.data.datapipes.iter.filelister import FileListerIterDataPipe as FileLister
from flambeau.utils.data.datapipes.iter.fileopener import FileOpenerIterDataPipe as FileOpener
from flambeau.utils.data.datapipes.iter.sharding import (
    ShardingFilterIterDataPipe as ShardingFilter,
)
from flambeau.utils.data.datapipes.iter.streamreader import StreamReaderIterDataPipe as StreamReader

__all__ = sorted([*_steps, "FileLister", "FileOpener", "ShardingFilter", "StreamReader"])

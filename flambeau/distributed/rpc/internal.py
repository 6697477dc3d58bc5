"""Calls as bytes: functions and arguments by pickle, tensors beside them as they are."""
from __future__ import annotations

import copyreg
import importlib
import io
import pickle
import sys
import threading
from enum import Enum
from operator import attrgetter
from typing import Any

from flambeau import Tensor
from flambeau._support.own_methods import adopt
from flambeau.distributed.rpc.calls import PythonUDF, RemoteException
from flambeau.distributed.rpc.calls import _handle_exception as _handle_exception
from flambeau.distributed.rpc.calls import _run_function as _run_function
from flambeau.distributed.rpc.rref import PyRRef, receive_fork
from flambeau.jit import ScriptFunction

__all__ = ["PythonUDF", "RPCExecMode", "RemoteException", "deserialize", "serialize"]

_thread_local_tensor_tables = threading.local()


class RPCExecMode(Enum):
    """How a function is called."""

    SYNC = "sync"
    ASYNC = "async"
    ASYNC_JIT = "async_jit"
    REMOTE = "remote"


def _find_class(module: str, name: str) -> Any:
    """A class of this package, whose name begins with `torch`, also where that is no module."""
    return attrgetter(name)(importlib.import_module("flambeau" + module.removeprefix("torch")))


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        """Classes and functions travel by a name that the other process finds."""
        if isinstance(obj, type):
            if obj.__module__.partition(".")[0] == "torch":
                return _find_class, (obj.__module__, obj.__qualname__)
        elif type(obj).__name__ == "function":              # Python's, or one of an op
            return _name_of_function(obj)
        elif isinstance(obj, ScriptFunction):
            return _find_by_name, (obj.__module__, obj.__qualname__)    # type: ignore[attr-defined]
        return NotImplemented


def _find_by_name(module: str, name: str) -> Any:
    return attrgetter(name)(importlib.import_module(module))


def _name_of_function(function: Any) -> Any:
    """The name under which a module has an op whose own name is another (`linalg.multi_dot`)."""
    module = sys.modules.get(function.__module__)
    if module is None or hasattr(module, function.__name__) or "." in function.__qualname__:
        return NotImplemented
    name = next((name for name in dir(module) if function.__name__.endswith(f"_{name}")
                 and getattr(module, name) is function), None)
    return NotImplemented if name is None else (_find_by_name, (function.__module__, name))


class _InternalRPCPickler:
    """Pickles what travels: a tensor becomes its place in a table, a remote reference a new fork
    of itself."""

    def __init__(self) -> None:
        self._class_reducer_dict: dict[type, Any] = {}

    def _register_reducer(self, obj_class: type, reducer: Any) -> None:
        """Have instances of a class pickled by `reducer`, inside RPC only."""
        self._class_reducer_dict.setdefault(obj_class, reducer)

    @classmethod
    def _tensor_receiver(cls, tensor_index: int) -> Tensor:
        return _thread_local_tensor_tables.recv_tables[tensor_index]

    def _tensor_reducer(self, tensor: Tensor) -> tuple[Any, ...]:
        if tensor.layout is not _strided() or tensor.device.type != "cpu" or tensor.is_quantized:
            return tensor.__reduce_ex__(2)
        table = _thread_local_tensor_tables.send_tables
        table.append(tensor)
        return _InternalRPCPickler._tensor_receiver, (len(table) - 1,)

    @classmethod
    def _py_rref_receiver(cls, fork: tuple[Any, ...]) -> Any:
        found = receive_fork(fork)
        unknown = getattr(_thread_local_tensor_tables, "unknown", None)
        if unknown is not None and not found.confirmed_by_owner():
            unknown.append(found._fork.confirmed)
        return found

    def _py_rref_reducer(self, rref: Any) -> tuple[Any, ...]:
        return _InternalRPCPickler._py_rref_receiver, (rref._serialize(),)

    _rref_reducer = _py_rref_reducer

    def serialize(self, obj: Any) -> tuple[bytes, list[Tensor]]:
        """The bytes of an object, and the tensors in it."""
        from flambeau.distributed.rpc.api import RRef
        file = io.BytesIO()
        pickler = _Pickler(file, protocol=5)
        pickler.dispatch_table = {
            **copyreg.dispatch_table, Tensor: self._tensor_reducer,
            PyRRef: self._py_rref_reducer, RRef: self._rref_reducer, **self._class_reducer_dict}
        before = getattr(_thread_local_tensor_tables, "send_tables", None)
        tensors: list[Tensor] = []
        _thread_local_tensor_tables.send_tables = tensors
        try:
            pickler.dump(obj)
        finally:
            _thread_local_tensor_tables.send_tables = before
        return file.getvalue(), tensors

    def deserialize(self, binary_data: bytes, tensor_table: list[Tensor]) -> Any:
        """The object of these bytes and tensors."""
        before = getattr(_thread_local_tensor_tables, "recv_tables", None)
        _thread_local_tensor_tables.recv_tables = tensor_table
        try:
            return pickle.loads(binary_data)
        except AttributeError as error:
            # a class or function that this process does not have
            words = (f"{error} Default RPC pickler does not serialize function code. Ensure that "
                     "UDFs are defined on both caller and callee modules.")
            found = AttributeError(words)
            found.__cause__ = error
            return found
        finally:
            _thread_local_tensor_tables.recv_tables = before


def _strided() -> Any:
    import flambeau
    return flambeau.strided


_internal_rpc_pickler = _default_pickler = _InternalRPCPickler()


def serialize(obj: Any) -> tuple[bytes, list[Tensor]]:
    """The bytes of an object, and the tensors in it.

    >>> import flambeau
    >>> data, tensors = serialize({"a": flambeau.ones(2)})
    >>> deserialize(data, tensors)
    {'a': tensor([1., 1.])}
    """
    return _internal_rpc_pickler.serialize(obj)


def deserialize(binary_data: bytes, tensor_table: list[Tensor]) -> Any:
    """The object of these bytes and tensors."""
    return _internal_rpc_pickler.deserialize(binary_data, tensor_table)


def deserialize_call(data: bytes, tensors: list[Tensor]) -> tuple[PythonUDF, list[Any]]:
    """A call, and futures: when they are done its references are known to their owners."""
    before = getattr(_thread_local_tensor_tables, "unknown", None)
    unknown: list[Any] = []
    _thread_local_tensor_tables.unknown = unknown
    try:
        call = deserialize(data, tensors)
    finally:
        _thread_local_tensor_tables.unknown = before
    if isinstance(call, AttributeError):
        raise RuntimeError(str(call)) from call
    return call, unknown


def _build_rpc_profiling_key(exec_type: RPCExecMode, func_name: str, current_worker_name: str,
                             dst_worker_name: str) -> str:
    """The name of a call in profiles."""
    return f"rpc_{exec_type.value}#{func_name}({current_worker_name} -> {dst_worker_name})"


def _start_record_function(exec_type: RPCExecMode, func_name: str, current_worker_name: str,
                           dest_worker_name: str) -> Any:
    """Begin to profile a call."""
    from flambeau.autograd.profiler import record_function
    return record_function(_build_rpc_profiling_key(exec_type, func_name, current_worker_name,
                                                    dest_worker_name))


adopt(globals(), "distributed.rpc.calls")

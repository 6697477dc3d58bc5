"""Objects with tensors in them, sent from one process to another.

The memory of tensors and arrays is kept apart from the rest of the pickle. A small message goes
through the connection as it is; a large one is written once into a file in shared memory, which
the receiver maps: nothing is copied there, and the memory lives as long as a tensor uses it.
"""

import io
import mmap
import os
import pickle
import tempfile

import flambeau
from flambeau import Tensor

INLINE = 1 << 15   # bytes; larger messages go through shared memory
_ALIGN = 64

_WITHOUT_NUMPY = {flambeau.bfloat16: flambeau.int16}


class _Pickler(pickle.Pickler):
    """Pickles tensors as NumPy arrays, which can be kept out of the pickle."""

    def reducer_override(self, value):
        if type(value) not in (Tensor, flambeau.nn.Parameter) or not _is_dense(value):
            return NotImplemented
        if value.requires_grad and not value.is_leaf:
            raise RuntimeError(
                "Cowardly refusing to serialize non-leaf tensor which requires_grad, since "
                "autograd does not support crossing process boundaries.  If you just want to "
                "transfer the data, call detach() on the tensor before serializing (e.g., "
                "putting it on the queue).")
        data, bits = value.detach(), _WITHOUT_NUMPY.get(value.dtype)
        if bits is not None:
            data = data.contiguous().view(bits)
        is_parameter = type(value) is not Tensor
        return _rebuild, (data.numpy(), is_parameter, value.requires_grad, bits is not None)


def _is_dense(tensor):
    return (tensor.layout is flambeau.strided and tensor.device.type == "cpu"
            and not tensor.is_conj() and not tensor.is_neg() and not tensor.is_quantized
            and tensor.dtype not in _EXOTIC)


_EXOTIC = {getattr(flambeau, name) for name in (
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
    "float4_e2m1fn_x2", "complex32") if hasattr(flambeau, name)}


def _rebuild(array, is_parameter, requires_grad, is_bfloat16):
    tensor = flambeau.from_numpy(array)
    if is_bfloat16:
        tensor = tensor.view(flambeau.bfloat16)
    if is_parameter:
        return flambeau.nn.Parameter(tensor, requires_grad)
    return tensor.requires_grad_() if requires_grad else tensor


def send(connection, value):
    """Send a value through a multiprocessing connection."""
    buffers = []
    stream = io.BytesIO()
    _Pickler(stream, protocol=5, buffer_callback=buffers.append).dump(value)
    parts = [stream.getbuffer(), *(buffer.raw() for buffer in buffers)]
    sizes = [part.nbytes for part in parts]
    if sum(sizes) <= INLINE:
        connection.send((None, [bytes(part) for part in parts]))
        return
    descriptor, path = tempfile.mkstemp(prefix=prefix(os.getpid()), dir=shared_folder())
    with open(descriptor, "wb") as file:
        for part in parts:
            file.write(part)
            file.write(bytes(-part.nbytes % _ALIGN))
    connection.send((path, sizes))


def receive(connection):
    """Receive what :func:`send` sent."""
    path, parts = connection.recv()
    if path is not None:
        parts = _map(path, parts)
    else:
        parts = [parts[0], *(bytearray(part) for part in parts[1:])]
    return pickle.loads(parts[0], buffers=parts[1:])


def _map(path, sizes):
    with open(path, "r+b") as file:
        memory = memoryview(mmap.mmap(file.fileno(), 0))
    os.unlink(path)
    parts, start = [], 0
    for size in sizes:
        parts.append(memory[start:start + size])
        start += size + -size % _ALIGN
    return parts


def prefix(pid):
    """How the names of the files begin that a process sends."""
    return f"flambeau-{pid}-"


def shared_folder():
    """Where these files are; None for the folder of temporary files."""
    folder = "/dev/shm"
    return folder if os.access(folder, os.W_OK) else None

"""The ops of torchvision's extension for image files, as `torch.ops.image.*`, by Pillow."""
from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np

import flambeau
from flambeau import Tensor
from flambeau.library import Library

# The modes of `torchvision.io.ImageReadMode` as Pillow's.
_UNCHANGED = 0
_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
_ONE_OF = {b"\xff\xd8\xff": "JPEG", b"\x89PNG\r\n\x1a\n": "PNG", b"GIF87a": "GIF", b"GIF89a": "GIF"}
_WEIGHTS = flambeau.tensor([9794, 19235, 3739], dtype=flambeau.int32)   # of colours in grey, by 2¹⁵
_TURNED = 0x0112            # the tag of EXIF that says how the picture was held


def read_file(path: str) -> Tensor:
    """The bytes of a file."""
    try:
        return flambeau.from_numpy(np.fromfile(path, np.uint8))
    except OSError as error:
        raise RuntimeError(f"[Errno {error.errno}] {error.strerror}: '{path}'") from error


def write_file(path: str, data: Tensor) -> None:
    """Make a file of bytes."""
    _check_bytes(data, "Input tensor dtype should be uint8", "Input data should be a 1-dimensional "
                 "tensor", 1)
    data.contiguous().numpy().tofile(path)


# ---- reading ------------------------------------------------------------------------------------

def decode_image(data: Tensor, mode: int, apply_exif_orientation: bool = False) -> Tensor:
    """The picture in the bytes of a file: `(channels, height, width)`."""
    _check_encoded(data)
    start = data[:16].numpy().tobytes()
    kind = next((k for first, k in _ONE_OF.items() if start.startswith(first)), None)
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        kind = "WEBP"
    if kind is None:
        raise RuntimeError("Unsupported image file. Only jpeg, png, webp and gif are currently "
                           "supported. For avif and heic format, please rely on `decode_avif` and "
                           "`decode_heic` directly.")
    if kind == "GIF":
        return decode_gif(data)
    if kind == "WEBP":
        return decode_webp(data, mode)
    return (decode_jpeg if kind == "JPEG" else decode_png)(data, mode, apply_exif_orientation)


def decode_jpeg(data: Tensor, mode: int, apply_exif_orientation: bool = False) -> Tensor:
    """The picture in a JPEG file."""
    _check_encoded(data)
    if mode not in (_UNCHANGED, 1, 3):
        raise RuntimeError("The provided mode is not supported for JPEG files")
    first = data[:2].tolist()
    if first != [0xFF, 0xD8]:
        raise RuntimeError(f"Not a JPEG file: starts with {' '.join(f'0x{b:02x}' for b in first)}")
    picture = _opened(data, "JPEG")
    if mode == 1 and picture.mode != "CMYK":
        picture.draft("L", picture.size)            # decode the luminance only
    return _pixels(picture, mode, apply_exif_orientation)


def decode_png(data: Tensor, mode: int, apply_exif_orientation: bool = False) -> Tensor:
    """The picture in a PNG file; of type uint16 if it has 16 bits a channel."""
    _check_encoded(data)
    if data[:8].numpy().tobytes() != b"\x89PNG\r\n\x1a\n":
        raise RuntimeError("Content is not png!")
    picture = _opened(data, "PNG")
    if mode not in (1, 2) or picture.mode not in ("RGB", "RGBA", "P"):
        return _pixels(picture, mode, apply_exif_orientation)
    coloured = _pixels(picture, 4, apply_exif_orientation)
    grey = (coloured[:3].int() * _WEIGHTS.view(3, 1, 1)).sum(0, keepdim=True) >> 15
    return flambeau.cat([grey.byte(), coloured[3:]]) if mode == 2 else grey.byte()


def decode_webp(data: Tensor, mode: int) -> Tensor:
    """The picture in a WebP file, in colour."""
    _check_encoded(data)
    picture = _opened(data, "WEBP")
    if mode in (3, 4):
        return _pixels(picture, mode, False)
    return _pixels(picture, 4 if "A" in picture.mode else 3, False)


def decode_gif(data: Tensor) -> Tensor:
    """The pictures in a GIF file, in colour; one has no dimension for their number."""
    from PIL import ImageSequence
    _check_encoded(data)
    frames = [_pixels(f, 3, False) for f in ImageSequence.Iterator(_opened(data, "GIF"))]
    return flambeau.stack(frames) if len(frames) > 1 else frames[0]


def _opened(data: Tensor, kind: str) -> Any:
    from PIL import Image, UnidentifiedImageError
    try:
        return Image.open(io.BytesIO(data.contiguous().numpy().tobytes()), formats=[kind])
    except UnidentifiedImageError as error:
        raise RuntimeError(f"Content is not {kind.lower()}!") from error


def _pixels(picture: Any, mode: int, turn: bool) -> Tensor:
    from PIL import ImageOps
    try:
        picture.load()
    except (OSError, SyntaxError) as error:
        raise RuntimeError(f"Out of bound read. Probably, the input image is corrupted: {error}"
                           ) from error
    if turn and picture.getexif().get(_TURNED, 1) != 1:
        picture = ImageOps.exif_transpose(picture)
    if picture.mode.startswith("I"):
        return _deep(np.asarray(picture).astype(np.uint16), mode)
    if picture.mode == "1":
        picture = picture.convert("L")
    if mode != _UNCHANGED:
        picture = picture.convert(_MODES[mode])
    pixels = np.array(picture)
    if picture.mode == "CMYK":
        pixels = 255 - pixels               # the files have amounts of ink inverted
    return _planes(pixels[:, :, None] if pixels.ndim == 2 else pixels)


def _deep(grey: np.ndarray, mode: int) -> Tensor:
    """A picture of 16 bits, which Pillow has only in grey."""
    colours = [grey] * (3 if mode in (3, 4) else 1)
    if mode in (2, 4):
        colours.append(np.full_like(grey, 65535))
    return _planes(np.stack(colours, -1))


def _planes(pixels: np.ndarray) -> Tensor:
    return flambeau.from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1)))


# ---- writing ------------------------------------------------------------------------------------

def encode_png(data: Tensor, compression_level: int) -> Tensor:
    """A picture as the bytes of a PNG file."""
    if not 0 <= compression_level <= 9:
        raise RuntimeError("Compression level should be between 0 and 9")
    return _encoded(data, "PNG", compress_level=compression_level)


def encode_jpeg(data: Tensor, quality: int) -> Tensor:
    """A picture as the bytes of a JPEG file."""
    return _encoded(data, "JPEG", quality=quality)


def _encoded(data: Tensor, kind: str, **options: int) -> Tensor:
    from PIL import Image
    _check_bytes(data, "Input tensor dtype should be uint8",
                 "Input data should be a 3-dimensional tensor", 3)
    channels = data.shape[0]
    if channels not in (1, 3):
        raise RuntimeError(f"The number of channels should be 1 or 3, got: {channels}")
    pixels = data.contiguous().numpy()
    picture = Image.fromarray(pixels[0] if channels == 1 else pixels.transpose(1, 2, 0).copy())
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return flambeau.from_numpy(np.frombuffer(file.getvalue(), np.uint8).copy())


def _check_bytes(data: Tensor, wrong_type: str, wrong_shape: str, ndim: int) -> None:
    if data.dtype != flambeau.uint8:
        raise RuntimeError(wrong_type)
    if data.ndim != ndim:
        raise RuntimeError(wrong_shape)


def _check_encoded(data: Tensor) -> None:
    shape = "Expected a non empty 1-dimensional tensor"
    _check_bytes(data, "Expected a torch.uint8 tensor", shape, 1)
    if data.numel() == 0:
        raise RuntimeError(shape)


_DECODE = "(Tensor data, int mode, bool apply_exif_orientation=False) -> Tensor"
_OPS: dict[str, Callable[..., Any]] = {
    "read_file(str path) -> Tensor": read_file,
    "write_file(str path, Tensor data) -> ()": write_file,
    f"decode_image{_DECODE}": decode_image,
    f"decode_jpeg{_DECODE}": decode_jpeg,
    f"decode_png{_DECODE}": decode_png,
    "decode_webp(Tensor encoded_data, int mode) -> Tensor": decode_webp,
    "decode_gif(Tensor data) -> Tensor": decode_gif,
    "encode_png(Tensor data, int compression_level) -> Tensor": encode_png,
    "encode_jpeg(Tensor data, int quality) -> Tensor": encode_jpeg,
}

_library = Library("image", "DEF")
for _schema, _function in _OPS.items():
    _library.impl(_library.define(_schema), _function, "CompositeImplicitAutograd")

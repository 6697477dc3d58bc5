"""torchvision's ops for image files."""

import io

import numpy as np
import pytest

import flambeau as torch
from flambeau._extensions import images  # noqa: F401 - registers the ops

Image = pytest.importorskip("PIL.Image")
ops = torch.ops.image
PIXELS = np.random.default_rng(0).integers(0, 256, (6, 8, 3), dtype=np.uint8)
PLANES = torch.from_numpy(PIXELS.transpose(2, 0, 1).copy())


def file(picture, kind, **options):
    buffer = io.BytesIO()
    picture.save(buffer, kind, **options)
    return torch.frombuffer(bytearray(buffer.getvalue()), dtype=torch.uint8)


def test_png_there_and_back():
    data = ops.encode_png(PLANES, 6)
    assert torch.equal(ops.decode_png(data, 0), PLANES)
    assert torch.equal(ops.decode_image(data, 4)[3], torch.full((6, 8), 255, dtype=torch.uint8))
    assert torch.equal(ops.decode_png(ops.encode_png(PLANES[:1], 1), 3)[2], PLANES[0])
    red, green, blue = PLANES.int()
    grey = (9794 * red + 19235 * green + 3739 * blue) // 2**15      # as libpng rounds
    assert torch.equal(ops.decode_png(data, 1)[0].int(), grey)


def test_kinds_of_png():
    deep = file(Image.fromarray(PIXELS[..., 0].astype(np.uint16) * 200), "PNG")
    found = ops.decode_image(deep, 2)
    assert found.dtype == torch.uint16 and found.shape == (2, 6, 8)
    assert found[0, 0, 0] == 200 * int(PIXELS[0, 0, 0]) and found[1, 0, 0] == 65535
    black = ops.decode_image(file(Image.fromarray(PIXELS[..., 0] > 99), "PNG"), 0)
    assert black.unique().tolist() == [0, 255]


def test_jpeg():
    data = ops.encode_jpeg(torch.full((3, 16, 16), 90, dtype=torch.uint8), 95)
    assert torch.equal(ops.decode_jpeg(data, 0), torch.full((3, 16, 16), 90, dtype=torch.uint8))
    assert ops.decode_image(data, 1).shape == (1, 16, 16)
    exif = Image.Exif()
    exif[0x0112] = 6
    turned = file(Image.fromarray(PIXELS), "JPEG", exif=exif)
    assert ops.decode_jpeg(turned, 3, True).shape == (3, 8, 6)
    assert ops.decode_jpeg(turned, 3).shape == (3, 6, 8)


def test_gif_and_webp():
    frames = [Image.fromarray(np.roll(PIXELS, i, 0)).convert("P") for i in range(3)]
    still = file(frames[0], "GIF")
    moving = file(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert ops.decode_image(still, 0).shape == (3, 6, 8)
    assert ops.decode_gif(moving).shape == (3, 3, 6, 8)
    data = file(Image.fromarray(PIXELS), "WEBP", lossless=True)
    assert torch.equal(ops.decode_image(data, 0), PLANES)


def test_files(tmp_path):
    path = str(tmp_path / "a")
    ops.write_file(path, torch.arange(5, dtype=torch.uint8))
    assert ops.read_file(path).tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(RuntimeError, match=r"\[Errno 2\] No such file or directory: "):
        ops.read_file(path + "b")


def test_what_is_refused():
    nothing, png = torch.zeros(10, dtype=torch.uint8), ops.encode_png(PLANES, 6)
    for message, call in [
            ("Unsupported image file", lambda: ops.decode_image(nothing, 0)),
            ("Expected a torch.uint8 tensor", lambda: ops.decode_image(nothing.float(), 0)),
            ("Expected a non empty 1-dimensional", lambda: ops.decode_image(nothing[:0], 0)),
            ("Expected a non empty 1-dimensional", lambda: ops.decode_png(nothing[None], 0)),
            ("Content is not png!", lambda: ops.decode_png(nothing, 0)),
            ("Out of bound read", lambda: ops.decode_png(png[:70], 0)),
            ("Not a JPEG file: starts with 0x00 0x00", lambda: ops.decode_jpeg(nothing, 0)),
            ("mode is not supported for JPEG", lambda: ops.decode_jpeg(nothing, 2)),
            ("should be between 0 and 9", lambda: ops.encode_png(PLANES, 11)),
            ("should be 1 or 3, got: 2", lambda: ops.encode_jpeg(PLANES[:2], 50)),
            ("dtype should be uint8", lambda: ops.encode_png(PLANES.float(), 1)),
            ("should be a 3-dimensional tensor", lambda: ops.encode_png(PLANES[0], 1)),
            ("dtype should be uint8", lambda: ops.write_file("x", PLANES.float()))]:
        with pytest.raises(RuntimeError, match=message):
            call()

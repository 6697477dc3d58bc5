"""Values as bytes, for the stores whose entries are elsewhere.

A value is a letter for its type, four bytes of length, and that many bytes: s text, b bytes,
i integer, f float, t or n true or None, l a list of values.
"""
from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any


def encode(value: Any) -> bytes:
    if value is None or isinstance(value, bool):
        kind, body = b"n" if value is None else b"t", b"1" if value else b""
    elif isinstance(value, str):
        kind, body = b"s", value.encode()
    elif isinstance(value, bytes):
        kind, body = b"b", value
    elif isinstance(value, int):
        kind, body = b"i", str(value).encode()
    elif isinstance(value, float):
        kind, body = b"f", struct.pack("!d", value)
    else:
        kind, body = b"l", b"".join(map(encode, value))
    return kind + struct.pack("!I", len(body)) + body


def _decode(kind: bytes, body: bytes) -> Any:
    if kind == b"l":
        found, at = [], 0
        while at < len(body):
            size = struct.unpack_from("!I", body, at + 1)[0]
            found.append(_decode(body[at:at + 1], body[at + 5:at + 5 + size]))
            at += 5 + size
        return found
    kinds: dict[bytes, Callable[[bytes], Any]] = {
        b"n": lambda b: None, b"t": bool, b"s": bytes.decode, b"b": bytes, b"i": int,
        b"f": lambda b: struct.unpack("!d", b)[0]}
    return kinds[kind](body)


def receive(stream: Any) -> Any:
    head = stream.read(5)
    if len(head) < 5:
        raise EOFError
    size = struct.unpack("!I", head[1:])[0]
    return _decode(head[:1], stream.read(size))

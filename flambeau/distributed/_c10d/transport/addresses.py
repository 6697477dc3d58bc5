"""The address of this machine under which other processes reach it."""
from __future__ import annotations

import os
import socket
import struct
import sys

from flambeau.distributed._c10d.stores import DistNetworkError, HashStore, Store, TCPStore

_LOOPBACK = "127.0.0.1"
# addresses that are no one's, by RFC 5737 and RFC 3849
_ELSEWHERE = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))


def machine() -> str:
    """A name of this machine that no other has: containers may share their names."""
    name = os.uname().nodename if hasattr(os, "uname") else socket.gethostname()
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return f"{name} {file.read().strip()} {os.stat('/dev/shm').st_dev}"
    except OSError:
        return name


def own_address(store: Store, rank: int, size: int, chosen: str | None = None) -> str:
    """The address under which the other processes of a store reach this one: the chosen one,
    else the one from which this process reaches the store."""
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    if isinstance(store, (TCPStore, HashStore)):
        return chosen or (store._own_address() if isinstance(store, TCPStore) else _LOOPBACK)
    store.set(f"machine/{rank}", machine())
    if chosen:
        return chosen
    try:
        machines = {store.get(f"machine/{other}") for other in range(size)}
    except RuntimeError as error:
        missing = [other for other in range(size) if not store.check([f"machine/{other}"])]
        raise absent(missing, rank, store.timeout.total_seconds()) from error
    return _LOOPBACK if len(machines) == 1 else outward_address()


def absent(missing: list[int], rank: int, seconds: float) -> Exception:
    """The error of a process that waits for others in vain."""
    return DistNetworkError(f"connectFullMesh failed: ranks {missing} have not called rank "
                            f"{rank} in {seconds} seconds")


def outward_address() -> str:
    """The address of this machine in its network: of the default route, else of its name, else
    the loopback."""
    for family, host in _ELSEWHERE:
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((host, 1))                    # sends nothing
                return probe.getsockname()[0]
        except OSError:
            continue
    try:
        found = socket.getaddrinfo(socket.gethostname(), None, type=socket.SOCK_STREAM)
    except OSError:
        return _LOOPBACK
    return next((str(where[0]) for *_, where in found if _is_here(str(where[0]))), _LOOPBACK)


def _is_here(address: str) -> bool:
    """Does a name's address belong to this machine?"""
    try:
        listen(address, 1).close()
    except OSError:
        return False
    return True


def listen(address: str, backlog: int) -> socket.socket:
    """A socket that listens at any free port of an address, IPv4 or IPv6."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.create_server((address, 0), family=family, backlog=backlog)


def interface_of(variable: str) -> str | None:
    """The address of the network interface that an environment variable names (of the first, if
    it names several); None if it is not set.

    >>> interface_of("FLAMBEAU_NO_SUCH_VARIABLE") is None
    True
    """
    name = os.environ.get(variable, "").split(",")[0].strip()
    if not name:
        return None
    found = _interface_address(name)
    if found is None:
        known = ", ".join(each for _, each in socket.if_nameindex())
        raise RuntimeError(f"Unable to find address for: {name} (of {variable}; this machine has "
                           f"the interfaces {known})")
    return found


def _interface_address(name: str) -> str | None:
    try:
        import fcntl
    except ImportError:
        raise NotImplementedError("choosing a network interface by its name, on this system") \
            from None
    request = 0xC0206921 if sys.platform == "darwin" else 0x8915            # SIOCGIFADDR
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            found = fcntl.ioctl(probe, request, struct.pack("40s", name.encode()[:15]))
        return socket.inet_ntoa(found[20:24])
    except OSError:
        return _interface_address_v6(name)


def _interface_address_v6(name: str) -> str | None:
    try:
        with open("/proc/net/if_inet6") as file:
            rows = [line.split() for line in file]
    except OSError:
        return None
    found = [row for row in rows if row[5] == name]
    found.sort(key=lambda row: row[3] == "20")              # those of one link only come last
    if not found:
        return None
    address = socket.inet_ntop(socket.AF_INET6, bytes.fromhex(found[0][0]))
    return f"{address}%{name}" if found[0][3] == "20" else address

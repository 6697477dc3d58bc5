"""`EtcdServer`: an etcd that this process starts, for tests and for one machine."""
from __future__ import annotations

import atexit
import logging
import os
import shlex
import shutil
import socket
import subprocess
import tempfile
import time
from typing import Any, TextIO

from flambeau.distributed.elastic.utils.distributed import get_free_port

try:
    import etcd
except ModuleNotFoundError:
    from flambeau.distributed.elastic.rendezvous import _etcd_stub as etcd

logger = logging.getLogger(__name__)


def find_free_port() -> socket.socket:
    """A socket that holds a port nobody else uses; it is closed before the port is used."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.bind(("localhost", 0))
    found.listen(0)
    return found


def stop_etcd(subprocess: Any, data_dir: str | None = None) -> None:
    """End a server, and take its folder away."""
    if subprocess and subprocess.poll() is None:
        subprocess.terminate()
        subprocess.wait()
    if data_dir:
        shutil.rmtree(data_dir, ignore_errors=True)


class EtcdServer:
    """An etcd on a free port of this machine. The program is `etcd`, or what the variable
    `TORCHELASTIC_ETCD_BINARY_PATH` names."""

    def __init__(self, data_dir: str | None = None):
        self._host, self._port = "localhost", -1
        self._process: subprocess.Popen[bytes] | None = None
        self._base_data_dir = data_dir
        self._binary = os.environ.get("TORCHELASTIC_ETCD_BINARY_PATH") or shutil.which("etcd") \
            or "etcd"
        if shutil.which(self._binary) is None:
            self._binary = os.path.join(os.path.dirname(__file__), "bin", "etcd")

    def _get_etcd_server_process(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("No etcd server process started. Call etcd_server.start() first")
        return self._process

    def get_port(self) -> int:
        """The port of clients."""
        return self._port

    def get_host(self) -> str:
        """The machine: this one."""
        return self._host

    def get_endpoint(self) -> str:
        """HOST:PORT"""
        return f"{self._host}:{self._port}"

    def start(self, timeout: int = 60, num_retries: int = 3,
              stderr: int | TextIO | None = None) -> None:
        """Start the server and wait until it answers."""
        data_dir = os.path.join(self._base_data_dir or tempfile.mkdtemp("torchelastic_etcd_data"),
                                f"{os.getpid()}")
        os.makedirs(data_dir, exist_ok=True)
        for attempt in range(num_retries):
            try:
                return self._start(data_dir, timeout, stderr)
            except OSError as error:
                logger.warning("Failed to start etcd server (attempt %s of %s): %s", attempt + 1,
                               num_retries, error)
                if attempt == num_retries - 1:
                    shutil.rmtree(data_dir, ignore_errors=True)
                    raise

    def _start(self, data_dir: str, timeout: int = 60, stderr: int | TextIO | None = None) -> None:
        self._port, peers = get_free_port(), get_free_port()
        command = shlex.split(
            f"{self._binary} --enable-v2 --data-dir {shlex.quote(data_dir)} --listen-client-urls "
            f"http://{self._host}:{self._port} --advertise-client-urls "
            f"http://{self._host}:{self._port} --listen-peer-urls http://{self._host}:{peers}")
        self._process = subprocess.Popen(command, close_fds=True, stderr=stderr)
        atexit.register(stop_etcd, self._process, data_dir)
        self._wait_for_ready(timeout)

    def get_client(self) -> Any:
        """A client of the server."""
        return etcd.Client(host=self._host, port=self._port, version_prefix="/v2",
                           read_timeout=10)

    def _wait_for_ready(self, timeout: int = 60) -> None:
        client = etcd.Client(host=self._host, port=self._port, version_prefix="/v2",
                             read_timeout=5)
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if self._get_etcd_server_process().poll() is not None:
                raise RuntimeError("Etcd server process exited with the code: "
                                   f"{self._get_etcd_server_process().returncode}")
            try:
                logger.info("etcd server ready. version: %s", client.version)
                return
            except Exception:
                time.sleep(1)
        raise TimeoutError("Timed out waiting for etcd server to be ready!")

    def stop(self) -> None:
        """End the server."""
        stop_etcd(self._process, self._base_data_dir)

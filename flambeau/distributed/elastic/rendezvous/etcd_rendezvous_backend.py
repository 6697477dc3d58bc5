"""The state of a rendezvous, kept in etcd."""
from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from typing import Any

from flambeau.distributed._c10d.stores import Store
from flambeau.distributed.elastic.rendezvous.api import (
    RendezvousConnectionError,
    RendezvousParameters,
    RendezvousStateError,
)
from flambeau.distributed.elastic.rendezvous.dynamic_rendezvous import RendezvousBackend
from flambeau.distributed.elastic.rendezvous.etcd_store import EtcdStore
from flambeau.distributed.elastic.rendezvous.utils import parse_rendezvous_endpoint

try:
    import etcd
except ModuleNotFoundError:
    from flambeau.distributed.elastic.rendezvous import _etcd_stub as etcd


class EtcdRendezvousBackend(RendezvousBackend):
    """One entry of etcd: the state in base64; its token is the number of its last change."""

    _DEFAULT_TTL = 7200                     # seconds after which the entry of a run is forgotten

    def __init__(self, client: Any, run_id: str, key_prefix: str | None = None,
                 ttl: int | None = None):
        if not run_id:
            raise ValueError("The run id must be a non-empty string.")
        self._client, self._ttl = client, ttl if ttl and ttl > 0 else self._DEFAULT_TTL
        self._key = f"{key_prefix}/{run_id}" if key_prefix else run_id

    @property
    def name(self) -> str:
        """"etcd-v2"."""
        return "etcd-v2"

    def get_state(self) -> tuple[bytes, Any] | None:
        """The state and its token; None if there is none yet."""
        try:
            return self._decoded(self._client.read(self._key))
        except etcd.EtcdKeyNotFound:
            return None
        except (etcd.EtcdException, etcd.EtcdConnectionFailed) as error:
            raise self._lost() from error

    def set_state(self, state: bytes, token: Any | None = None
                  ) -> tuple[bytes, Any, bool] | None:
        """Set the state if it is still the one of that token: the state that is there now, its
        token, and whether it was set."""
        text = b64encode(state).decode()
        if token is not None and not isinstance(token, int):
            return self._refused()
        condition = {"prevIndex": token} if token else {"prevExist": False}
        try:
            made = self._client.write(self._key, text, self._ttl, **condition)
        except (etcd.EtcdAlreadyExist, etcd.EtcdCompareFailed, etcd.EtcdKeyNotFound):
            return self._refused()
        except (etcd.EtcdException, etcd.EtcdConnectionFailed) as error:
            raise self._lost() from error
        return (*self._decoded(made), True)

    def _refused(self) -> tuple[bytes, Any, bool] | None:
        found = self.get_state()
        return None if found is None else (*found, False)

    @staticmethod
    def _decoded(found: Any) -> tuple[bytes, Any]:
        try:
            return b64decode(found.value, validate=True), found.modifiedIndex
        except binascii.Error as error:
            raise RendezvousStateError("The state object is corrupt. See inner exception for "
                                       "details.") from error

    @staticmethod
    def _lost() -> RendezvousConnectionError:
        return RendezvousConnectionError("The connection to etcd has failed. See inner exception "
                                         "for details.")


def create_etcd_client(params: RendezvousParameters) -> Any:
    """A client for the endpoint of a rendezvous.

    Options: `read_timeout` in seconds, `protocol` ("http" or "https"), `ssl_cert`,
    `ssl_cert_key` and `ca_cert`, files."""
    host, port = parse_rendezvous_endpoint(params.endpoint, default_port=2379)
    seconds = params.get_as_int("read_timeout", 60)
    if seconds is None or seconds <= 0:
        raise ValueError("The read timeout must be a positive integer.")
    protocol = (params.get("protocol", "http") or "http").strip().lower()
    if protocol not in ("http", "https"):
        raise ValueError("The protocol must be HTTP or HTTPS.")
    certificate = params.get("ssl_cert")
    if certificate and params.get("ssl_cert_key"):
        certificate = (certificate, params.get("ssl_cert_key"))
    try:
        return etcd.Client(host, port, read_timeout=seconds, allow_reconnect=True,
                           protocol=protocol, cert=certificate, ca_cert=params.get("ca_cert"))
    except (etcd.EtcdException, etcd.EtcdConnectionFailed) as error:
        raise EtcdRendezvousBackend._lost() from error


def create_backend(params: RendezvousParameters) -> tuple[EtcdRendezvousBackend, Store]:
    """The state of a rendezvous, and a store for its agents, at its endpoint."""
    client = create_etcd_client(params)
    backend = EtcdRendezvousBackend(client, params.run_id, "/torch/elastic/rendezvous")
    return backend, EtcdStore(client, "/torch/elastic/store")

"""The server that says an agent is alive."""
from flambeau.distributed.elastic.agent.server.health_check_server import (
    HealthCheckServer,
    create_healthcheck_server,
)


def test_it_knows_whom_to_ask():
    server = create_healthcheck_server(alive_callback=lambda: 7, port=1, timeout=60)
    assert isinstance(server, HealthCheckServer)
    assert server.alive_callback() == 7
    assert (server._port, server._timeout) == (1, 60)
    assert server.start() is None and server.stop() is None

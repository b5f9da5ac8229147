"""Who listens at a port, as far as this machine tells."""

import os
import socket
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path
from threading import Thread

from anabranch.apps.listeners import listens, owner
from anabranch.apps.processes.servers import ServerProcess, answers


def test_the_process_that_listens_at_a_port_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        found = owner(port)
        assert found is not None
        assert found.endswith(f"(process {os.getpid()})")
        assert listens(os.getpid(), port)
        assert not listens(os.getppid(), port)
    assert owner(port) is None
    assert not listens(os.getpid(), port)


def test_who_is_connected_to_a_port_doesnt_own_it() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        assert not listens(os.getpid(), client.getsockname()[1])


def test_a_process_that_has_ended_owns_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert not listens(2**22 + 1, server.getsockname()[1])


def test_another_process_at_its_port_isnt_taken_for_a_child(tmp_path: Path) -> None:
    """Whoever answers there with 200 may be an earlier run's, or somebody else's."""
    with HTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as stranger:
        serving = Thread(target=stranger.serve_forever)
        serving.start()
        child = ServerProcess("child", ["sleep", "60"], tmp_path, lambda: True)
        child.launch()
        try:
            assert answers(stranger.server_port, "/") == 200
            assert not child.answers(stranger.server_port, "/")
        finally:
            child.kill()
            stranger.shutdown()
            serving.join()

"""A server that says where it listens takes the first append at once."""

import json
import subprocess
from contextlib import closing
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path

from tests.integration.cli_server import ANABRANCH, Server


def test_the_first_append_succeeds_once_the_endpoint_is_written(tmp_path: Path) -> None:
    with Server.started(tmp_path, http=True) as server:
        assert server.http is not None
        host, port = server.http.split(":")
        bodies = {"/v1/logs": {"name": "a"}, "/v1/logs/a/records": {"records": [{"value": "1"}]}}
        for path, body in bodies.items():
            with closing(HTTPConnection(host, int(port), timeout=60)) as connection:
                headers = {"Content-Type": "application/json"}
                connection.request("POST", path, json.dumps(body), headers)
                assert connection.getresponse().status == HTTPStatus.CREATED, path


def test_the_first_append_to_a_log_that_was_there_before_succeeds(tmp_path: Path) -> None:
    with Server.started(tmp_path) as server:
        subprocess.run([*ANABRANCH, "log", "create", "a"], env=server.environment, check=True)
        server.process.kill()
    with Server.started(tmp_path) as server:
        subprocess.run([*ANABRANCH, "append", "a", "1"], env=server.environment, check=True)

"""What is in the way of a Ray is told before anything is read."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from coterie.__main__ import main
from coterie.errors import ClusterError
from coterie.product.cluster.connection import check_reach, connected


@pytest.mark.parametrize("command", ["fit", "score"])
def test_without_ray_the_extra_is_named_before_tables_are_read(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    tables = ("--graph", "no-such", "--arms", "no-such") if command == "fit" else ()
    assert main([command, "no-such", *tables, "--out", str(tmp_path / "x.parquet"), "--on", "ray"]) == 2
    assert "running on Ray needs 'ray', which is not installed" in capsys.readouterr().err


def test_an_address_where_nobody_listens_is_told() -> None:
    pytest.importorskip("ray", reason="Ray comes with the extra 'ray'")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        check_reach(address)
    with pytest.raises(ClusterError, match=f"no Ray cluster at '{address}': nobody listens there"):
        check_reach(address)


@pytest.mark.parametrize("ends", [True, False])
def test_a_cluster_that_asks_for_a_token_is_told_as_such(monkeypatch: pytest.MonkeyPatch, ends: bool) -> None:
    pytest.importorskip("ray", reason="Ray comes with the extra 'ray'")

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        said = "RPC error: InvalidAuthToken: Authentication token is missing or incorrect"
        if not ends:
            raise subprocess.TimeoutExpired(command, 30, stderr=said.encode())
        return subprocess.CompletedProcess(command, 1, "", f"{said}\nConnectionError: no")

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(ClusterError, match="the Ray cluster at 'auto' asks for a token"), connected("auto", jobs=1):
        pass

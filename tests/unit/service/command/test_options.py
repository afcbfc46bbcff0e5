from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from coterie.__main__ import parser
from coterie.errors import ParameterError
from coterie.service.app import ServiceSettings
from coterie.service.command.options import settings_from


def given(*arguments: str) -> Namespace:
    return parser("serve").parse_args(["serve", *arguments])


def test_flags_go_before_the_file_and_the_file_before_defaults(tmp_path: Path) -> None:
    file = tmp_path / "service.toml"
    file.write_text('port = 9000\nstore = "there"\nsnapshot_every = 5\n')
    found = settings_from(given("--config", str(file), "--port", "9001"))
    assert (found.port, found.store, found.snapshot_every) == (9001, "there", 5)
    assert found.host == ServiceSettings().host


def test_without_any_they_are_the_defaults() -> None:
    assert settings_from(given()) == ServiceSettings()


def test_the_demonstration_has_a_store_of_its_own_unless_one_is_named() -> None:
    assert settings_from(given("--demo")).store == "coterie-demo-store"
    assert settings_from(given("--demo", "--store", "mine")).store == "mine"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--port", "70000"], "at `$.port`"),
        (["--rate-per-key", "0"], "at `$.rate_per_key`"),
        (["--store", ""], "at `$.store`"),
    ],
)
def test_a_flag_out_of_range_is_refused(arguments: list[str], why: str) -> None:
    with pytest.raises(ParameterError) as refused:
        settings_from(given(*arguments))
    assert why in refused.value.problem


@pytest.mark.parametrize(("content", "why"), [(b"port 1", "cannot be read"), (b"\xff", "cannot be read")])
def test_a_file_that_is_no_toml_is_refused(content: bytes, why: str, tmp_path: Path) -> None:
    file = tmp_path / "service.toml"
    file.write_bytes(content)
    with pytest.raises(ParameterError, match=why):
        settings_from(given("--config", str(file)))


def test_a_setting_is_a_flag_or_in_the_file_by_the_same_name() -> None:
    flags: dict[str, Any] = vars(given())
    assert {"store", "host", "port", "rate_per_key", "personalizer_experiment"} <= set(flags) & set(
        ServiceSettings.__struct_fields__
    )

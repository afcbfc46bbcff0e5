"""The settings of the service, from a file and from flags, which go before it."""

import argparse
import tomllib
from pathlib import Path
from typing import Any

from coterie.errors import ParameterError
from coterie.service.app.settings import ServiceSettings, settings_of

FLAGS = ("store", "host", "port", "rate_per_key", "personalizer_experiment")


def settings_from(options: argparse.Namespace) -> ServiceSettings:
    """Returns the settings that flags and the file name, and the others as they are by default."""
    named = {} if options.config is None else _read(options.config)
    flags = {name: getattr(options, name) for name in FLAGS if getattr(options, name) is not None}
    quiet = {"store": "coterie-demo-store", "log_requests": False} if options.demo else {}
    return settings_of(quiet | named | flags)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        rule = "a file of settings is TOML, a line such as port = 8711 for each"
        raise ParameterError(f"{path.name} cannot be read: {error}", rule, "Correct it") from None

"""The command line as people call it, in a process of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path


def coterie(*arguments: object, folder: Path) -> subprocess.CompletedProcess[str]:
    """Returns what `coterie` with these arguments says and how it ends."""
    wide = {"COLUMNS": "160", "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1"}
    return subprocess.run(
        [sys.executable, "-m", "coterie", *map(str, arguments)],
        cwd=folder,
        env=os.environ | wide,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


def regrets(output: str) -> dict[str, float]:
    """Returns the mean final regrets of the printed table."""
    table = output.split("Final regret", 1)[1].split("Mean ±", 1)[0]
    return {name: float(mean) for name, mean in re.findall(r"^ +(\S+) +(\d+\.?\d*) ±", table, flags=re.MULTILINE)}

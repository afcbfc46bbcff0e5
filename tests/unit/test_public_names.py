"""What `import coterie` offers, what it costs, and how little must be installed for it."""

import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from types import ModuleType

import pytest

import coterie
from coterie.runs.studies import studies_folder

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
HEAVY = ("matplotlib", "rich", "pandas", "polars", "narwhals", "networkx", "sklearn")

# Leaves the standard library, numpy, scipy and coterie itself; anything else is as if it were not installed.
ONLY_NUMPY_AND_SCIPY = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        standard = top in sys.stdlib_module_names or top.startswith("_sysconfigdata")
        if standard or top in ("numpy", "scipy", "coterie"):
            return None
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

for name in [name for name in sys.modules if name.partition(".")[0] in ("numpy", "scipy", "coterie")]:
    raise SystemExit(f"{name} was imported before the others were blocked")
sys.meta_path.insert(0, Blocker())
"""

COMMAND_LINE = """
from coterie.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def run(code: str, *arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=folder,
    )


def test_every_public_name_exists_once() -> None:
    assert len(set(coterie.__all__)) == len(coterie.__all__)
    for name in coterie.__all__:
        assert getattr(coterie, name) is not None


def test_no_public_name_is_left_out() -> None:
    """Whatever `__init__` imports under a public name is offered, apart from the folders themselves."""
    public = {
        name for name, value in vars(coterie).items() if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert public - set(coterie.__all__) == set()
    assert len(public) > 20


def test_public_classes_say_what_they_are() -> None:
    for name in coterie.__all__:
        value = getattr(coterie, name)
        if callable(value):
            assert value.__doc__, name


def test_the_regressor_is_there_when_it_is_asked_for() -> None:
    pytest.importorskip("sklearn", reason="scikit-learn comes with the extra 'sklearn'")
    from coterie.product.regressor import LaplacianKernelRegressor

    assert coterie.LaplacianKernelRegressor is LaplacianKernelRegressor
    with pytest.raises(AttributeError, match="no attribute 'LaplacianKernelRegresser'"):
        _ = coterie.LaplacianKernelRegresser  # type: ignore[attr-defined]


def test_without_scikit_learn_the_regressor_names_its_extra_and_all_else_is_there() -> None:
    done = run(ONLY_NUMPY_AND_SCIPY + "from coterie import *; import coterie; coterie.LaplacianKernelRegressor")
    assert done.returncode == 1
    assert "LaplacianKernelRegressor needs 'sklearn', which is not installed" in done.stderr
    assert "the extra 'sklearn'" in done.stderr


def test_the_version_is_the_same_everywhere() -> None:
    with PYPROJECT.open("rb") as file:
        declared = tomllib.load(file)["project"]["version"]
    assert coterie.__version__ == declared
    assert metadata.version("coterie") == declared


def test_importing_coterie_imports_nothing_heavy() -> None:
    done = run("import sys, coterie, coterie.problems, coterie.runs.console; print(*sorted(sys.modules))")
    assert done.returncode == 0, done.stderr
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert {"coterie", "numpy", "scipy"} <= loaded
    assert loaded & set(HEAVY) == set()


@pytest.mark.parametrize("name", HEAVY)
def test_the_blocker_blocks(name: str) -> None:
    done = run(ONLY_NUMPY_AND_SCIPY + f"import {name}")
    assert done.returncode == 1
    assert f"No module named '{name}'" in done.stderr


def test_numpy_and_scipy_are_enough_to_learn() -> None:
    done = run(
        ONLY_NUMPY_AND_SCIPY
        + """
import coterie as ct
graph = ct.make_graph("sbm", 8, seed=0)
for name in ct.list_policies():
    if name == "oracle":  # which only the laboratory's runner can make
        continue
    policy = ct.make_policy(name, graph=graph, arms=ct.ArmPool([[0.0], [1.0]]))
    for user in graph.users:
        policy.update(user, policy.select(user).arm, reward=1.0)
    print(name, policy.n_rewards)
"""
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{name} 8" for name in coterie.list_policies() if name != "oracle"]


def test_the_command_line_lists_policies_with_numpy_and_scipy_alone() -> None:
    done = run(ONLY_NUMPY_AND_SCIPY + COMMAND_LINE, "policies")
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == coterie.list_policies()


def test_the_command_line_lists_studies_with_numpy_and_scipy_alone() -> None:
    done = run(ONLY_NUMPY_AND_SCIPY + COMMAND_LINE, "studies")
    assert done.returncode == 0, done.stderr
    names = [line.split()[0] for line in done.stdout.splitlines()]
    assert names == sorted(path.stem for path in studies_folder().glob("*.toml"))


def test_the_demo_names_the_extra_it_needs(tmp_path: Path) -> None:
    done = run(ONLY_NUMPY_AND_SCIPY + COMMAND_LINE, "demo", "--out", str(tmp_path / "new"), folder=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("coterie: the laboratory needs '")
    assert "the extra 'lab'" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []

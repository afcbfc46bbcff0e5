"""Two million rewards of 200,000 users from a file, in 2.5 GiB: fitted, scored to a file, saved, loaded and gone on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CAP = 5 * 2**29  # with 64 features a matrix for each user would be 6.5 GB

PROGRAM = f"""
import resource
resource.setrlimit(resource.RLIMIT_AS, ({CAP}, {CAP}))
import sys
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import coterie as ct

pa.set_cpu_count(1)
pa.set_io_thread_count(1)
folder, n_users, n_rows = sys.argv[1], 200_000, 2_000_000
rng = np.random.default_rng(0)
columns = {{"user": rng.integers(n_users, size=n_rows), "arm": rng.integers(300, size=n_rows)}}
pq.write_table(pa.table(columns | {{"reward": rng.normal(size=n_rows)}}), folder + "/rewards.parquet")
del columns
graph = ct.make_graph("watts-strogatz", n_users, k=6)
arms = ct.ArmPool(rng.normal(size=(300, 16)))
bandit = ct.Bandit(graph=graph, arms=arms, policy="lk-gp-ucb", engine="sparse", noise_var=0.1)
assert bandit.fit(folder + "/rewards.parquet") == bandit.n_rewards == n_rows
bandit.score_all(top=3, to=folder + "/scores.parquet")
assert pq.ParquetFile(folder + "/scores.parquet").metadata.num_rows == 3 * n_users
bandit.save(folder + "/bandit")
before = bandit.predict(77)
del bandit
loaded = ct.Bandit.load(folder + "/bandit")
assert loaded.predict(77) == before
loaded.reward(loaded.decide(77).id, 1.0)
"""


@pytest.mark.slow
def test_a_large_table_is_fitted_in_bounded_memory(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    pytest.importorskip("pyarrow")
    # Threads and pools of memory reserve addresses, which count.
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

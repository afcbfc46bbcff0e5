"""Speed and memory as ratios, each measured in one run against a named peer or limit, on one BLAS thread."""

import os

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# rdma-core's own tests (package python3-pyverbs) on a soft NIC; arguments go to run_pyverbs.py.
set -euo pipefail
root=${ORDMA_ROOT:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${ORDMA_TEST_BUILD:-$root/build}
engine=${ORDMA_TEST_ENGINE:-twin}
exec timeout 600 "$build/bin/ordma" run -q --net "pyverbs-$$" --engine "$engine" -- \
	/usr/bin/python3 "$root/tests/native/run_pyverbs.py" --work "$build/pyverbs" "$@"

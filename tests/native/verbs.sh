#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Verbs tests on a network of their own. Arguments go to the test program. Environment: ORDMA_TEST_ENGINE chooses the engine,
# ORDMA_TEST_GID the GID index, ORDMA_TEST_BUILD the build folder.
set -euo pipefail
root=${ORDMA_ROOT:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${ORDMA_TEST_BUILD:-$root/build}
engine=${ORDMA_TEST_ENGINE:-twin}
net=verbs-$engine-$$
export ORDMA_TEST_STAT="$build/bin/ordma stat --net $net --all"
report=()
if [ -n "${ORDMA_JUNIT:-}" ]; then report=(-r junit -o "$ORDMA_JUNIT"); fi
exec "$build/bin/ordma" run --net "$net" --engine "$engine" -q -- "$build/bin/test_verbs" "${report[@]}" "$@"

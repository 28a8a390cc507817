#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Verbs tests on a soft-device of their own. Arguments go to the test program; ORDMA_TEST_ENGINE chooses the engine.
set -euo pipefail
root=${ORDMA_ROOT:-$(cd "$(dirname "$0")/../.." && pwd)}
engine=${ORDMA_TEST_ENGINE:-twin}
report=()
if [ -n "${ORDMA_JUNIT:-}" ]; then report=(-r junit -o "$ORDMA_JUNIT"); fi
exec "$root/build/bin/ordma" run --net "verbs-$engine-$$" --engine "$engine" -q -- \
	"$root/build/bin/test_verbs" "${report[@]}" "$@"

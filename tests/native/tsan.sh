#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Provider and verbs tests under ThreadSanitizer (cases 14, 101 and 102 ask for it); the soft-device stays as it is. Fences order the
# program against that other process, which the sanitizer does not see: its warning about them is off.
set -euo pipefail
root=${ORDMA_ROOT:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${ORDMA_TEST_BUILD:-$root/build}
out=${ORDMA_TSAN_BUILD:-$root/build/tsan}
net=tsan-$$
cmake -G Ninja -S "$root" -B "$out" -DORDMA_SANITIZE=thread -DORDMA_RTL=OFF -DCMAKE_C_FLAGS=-Wno-tsan >/dev/null
ninja -C "$out" -j "$(nproc)" test_verbs ordma_provider >"$out/build.log" || { tail -n 30 "$out/build.log"; exit 1; }
# setarch: some kernels' address randomisation is more than the sanitizer's memory layout can take.
status=0
ORDMA_TEST_STAT= TSAN_OPTIONS="halt_on_error=0 exitcode=66 second_deadlock_stack=1" timeout 900 \
	"$build/bin/ordma" run -q --net "$net" -- env RDMAV_DRIVERS="$out/lib/libordma" setarch -R \
	"$out/bin/test_verbs" "${@:-[threads],case_016*,case_017*,case_018*,case_019*,case_023*,resize*}" >"$out/tsan.log" 2>&1 || status=$?
races=$(grep -c 'WARNING: ThreadSanitizer' "$out/tsan.log" || true)
if [ "$status" -ne 0 ] || [ "$races" -ne 0 ]; then
	grep -A25 -m3 'WARNING: ThreadSanitizer' "$out/tsan.log" || tail -n 30 "$out/tsan.log"
	echo "FAIL: status $status, $races reports ($out/tsan.log)"
	echo "0 passed, 1 failed, 0 skipped"
	exit 1
fi
tail -n 3 "$out/tsan.log"
echo "$(sed -n 's/.* in \([0-9]*\) test cases*).*/\1/p' "$out/tsan.log") passed, 0 failed, 0 skipped"

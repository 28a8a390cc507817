#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Builds the fuzzers of the driver core with clang and runs each for SECONDS (default by tier). The
# corpus grows in build/fuzz-core; a crash leaves its input there and fails.
set -euo pipefail

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
OUT=${BUILD:-$TOP/build}/fuzz-core
case ${ORDMA_TEST_SCALE:-fast} in
fast) seconds=10 ;;
check) seconds=60 ;;
*) seconds=3600 ;;
esac
seconds=${1:-$seconds}
flags=(-g -O1 "-fsanitize=fuzzer-no-link,address,undefined" -fno-sanitize-recover=all
	-I"$TOP/kernel/core" -Wall -Wextra -Werror)

mkdir -p "$OUT"
objects=()
for source in "$TOP"/kernel/core/*.c; do
	object=$OUT/$(basename "$source" .c).o
	clang -std=c11 "${flags[@]}" -c "$source" -o "$object"
	objects+=("$object")
done
clang++ -std=c++20 "${flags[@]}" -c "$TOP/tests/core/fake_nic.cpp" -o "$OUT/fake_nic.o"

for name in fuzz_core_events fuzz_core_modify; do
	clang++ -std=c++20 "${flags[@]}" -fsanitize=fuzzer "$TOP/tests/fuzz/$name.cpp" \
		"$OUT/fake_nic.o" "${objects[@]}" -o "$OUT/$name"
	mkdir -p "$OUT/corpus-$name"
	timeout $((seconds + 60)) "$OUT/$name" -max_total_time="$seconds" -max_len=4096 \
		-artifact_prefix="$OUT/" -print_final_stats=1 "$OUT/corpus-$name" >"$OUT/$name.log" 2>&1 ||
		{ tail -40 "$OUT/$name.log" >&2 && echo "fuzz: $name FAILED" >&2 && exit 1; }
	runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$OUT/$name.log")
	echo "fuzz: $name: $runs inputs in $seconds s, no fault"
done
echo "2 passed, 0 failed"

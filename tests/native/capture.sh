#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs a mixed workload with --pcap, over IPv4 and over IPv6, and has the captures judged: wirecheck.py (ICRC by scapy, tshark),
# then capture.py (what single cases want on the wire). case_068: a third capture, with corruption.
set -u
root=${ORDMA_ROOT:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${ORDMA_TEST_BUILD:-$root/build}
out=${ORDMA_TEST_OUT:-$build/test}
engine=${ORDMA_TEST_ENGINE:-twin}
workload='[capture],case_034 every*,case_05*,case_07*,case_080*,case_008*,UC*'
passed=0 failed=0
mkdir -p "$out"

t() { # NAME COMMAND...: one test of this script
	local name=$1 log=$out/capture-$1.log
	shift
	if "$@" >"$log" 2>&1; then
		passed=$((passed + 1))
		echo "ok $name"
	else
		failed=$((failed + 1))
		echo "FAIL $name ($log)"
		tail -n 25 "$log"
	fi
}

# NAME GID TESTS FABRIC...: a capture is whole when its soft-device has ended. Its pid is asked for once: every look at a network is
# a connection to it, and so a reason to stay.
record() {
	local net=cap-$1-$$ gid=$2 file=$out/$1.pcapng tests=$3 status=0 pid
	shift 3
	rm -f "$file"
	ORDMA_TEST_GID=$gid ORDMA_TEST_STAT= timeout 300 "$build/bin/ordma" run -q --net "$net" --engine "$engine" \
		--pcap "$file" "$@" -- "$build/bin/test_verbs" "$tests" || status=1
	pid=$("$build/bin/ordma" ps | awk -v net="$net" '$1 == net { print $4 }')
	for _ in $(seq 300); do
		[ -n "$pid" ] && [ -d "/proc/$pid" ] || return $status
		sleep 0.1
	done
	echo "the soft-device of $net does not end"
	return 1
}

wirecheck() { timeout 600 /usr/bin/python3 "$root/tools/wire-check/wirecheck.py" "$@"; }

for version in "ipv4 1" "ipv6 0"; do
	read -r name gid <<<"$version"
	t "record_$name" record "$name" "$gid" "$workload"
	t "wirecheck_$name" wirecheck --min-roce 1000 --scapy-max 3000 "$out/$name.pcapng"
	t "cases_$name" timeout 120 /usr/bin/python3 "$root/tests/native/capture.py" "$out/$name.pcapng"
done
t record_corrupt record corrupt 1 'case_056*,case_057*,case_054*' --fabric corrupt=0.02 --seed 3
t wirecheck_corrupt wirecheck --allow-corrupt --min-roce 1000 --scapy-max 1000 "$out/corrupt.pcapng"
[ "$failed" -ne 0 ] || rm -f "$out"/{ipv4,ipv6,corrupt}.pcapng
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]

#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Stock verbs programs of the distribution on two soft NICs, and a table of what they measured.
#   demo.sh          natively, on every engine of this build
#   demo.sh --vm     in a VM on the real ordma.ko; rdma_cm between two VMs
# Exit status 0: every row passed.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ordma=${ORDMA:-$here/../../build/bin/ordma}
limit=30 # seconds for one test
rows=()
failed=0
engine=twin

say() { printf '%s\n' "$*" >&2; }

# Pingpongs and perftest meet on TCP port 18515; 0A is LISTEN.
server_listens() {
	cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | grep -Eq ':4853 [0-9A-F]+:0000 0A '
}

# Both ends of one test; stdout is the client's. Natively ordma starts them, in a guest we do.
both_ends() {
	if [ -z "${inside:-}" ]; then
		timeout "$limit" "$ordma" pair -q --net "demo-$engine-$$" --engine "$engine" -- "$@"
		return
	fi
	local server status tool=$1
	shift
	timeout "$limit" "$tool" -d ordma0 "$@" >/dev/null &
	server=$!
	until server_listens || ! kill -0 "$server" 2>/dev/null; do sleep 0.1; done
	timeout "$limit" "$tool" -d ordma1 "$@" localhost
	status=$?
	wait "$server" || [ $status -ne 0 ] || status=1
	return $status
}

# What a program's last line of numbers says: "size|result".
result_of() { # tool
	case $1 in
	ibv_*) sed -n 's/^\([0-9]*\) bytes in .*/bytes \1/p; s/.* = \([0-9.]*\) usec\/iter.*/usec \1/p' |
		awk -v iters="$2" '$1 == "bytes" { size = $2 / iters / 2 } $1 == "usec" { usec = $2 }
			END { if (usec != "") printf "%d|%.1f us/iter\n", size, usec }' ;;
	*_lat) awk 'NF >= 6 && $1 ~ /^[0-9]+$/ && $2 ~ /^[0-9]+$/ { line = $1 "|" $5 " us typical" } END { if (line) print line }' ;;
	*_bw) awk 'NF >= 5 && $1 ~ /^[0-9]+$/ && $2 ~ /^[0-9]+$/ { line = $1 "|" $4 " MB/s" } END { if (line) print line }' ;;
	esac
}

add_row() { # device, test, size, result, data
	rows+=("$(printf '%-8s %-8s %-22s %8s  %-22s %s' "$1" "$engine" "$2" "$3" "$4" "$5")")
}

run() { # iterations, data column, tool and arguments
	local iters=$1 data=$2 out got log
	shift 2
	log=$(mktemp)
	out=$(both_ends "$@" -n "$iters" 2>"$log")
	local status=$?
	got=$(printf '%s\n' "$out" | result_of "$1" "$iters")
	if [ $status -eq 0 ] && [ -n "$got" ]; then
		add_row ordma0-1 "$label" "${got%%|*}" "${got#*|}" "$data"
	else
		failed=1
		add_row ordma0-1 "$label" - "FAILED, status $status" -
		say "--- $* failed with status $status:"
		{ printf '%s\n' "$out"; cat "$log"; } | tail -n 12 >&2
	fi
	rm -f "$log"
}

devinfo() {
	local out
	if [ -z "${inside:-}" ]; then
		out=$(timeout "$limit" "$ordma" run -q --net "demo-$engine-$$" --engine "$engine" -- ibv_devinfo 2>&1)
	else
		out=$(ibv_devinfo 2>&1)
	fi
	if [ "$(printf '%s\n' "$out" | grep -c PORT_ACTIVE)" -ge 2 ]; then
		add_row ordma0-1 ibv_devinfo - "2 ports active" -
	else
		failed=1
		add_row ordma0-1 ibv_devinfo - "FAILED" -
		printf '%s\n' "$out" | tail -n 12 >&2
	fi
}

# scale: iterations in percent; a Verilated NIC is a thousand times slower than the twin.
suite() {
	local scale=$1 big=$2 checked="checked, both ends" not="not checked by the tool"
	devinfo
	label="ibv_rc_pingpong -c" run $((10 * scale)) "$checked" ibv_rc_pingpong -g 1 -c
	label="ibv_rc_pingpong -e -c" run $((10 * scale)) "$checked" ibv_rc_pingpong -g 0 -e -c
	label="ibv_ud_pingpong -c" run $((10 * scale)) "$checked" ibv_ud_pingpong -g 1 -s 1024 -c
	label=ib_write_bw run $((50 * scale)) "$not" ib_write_bw -s "$big"
	label=ib_write_lat run $((10 * scale)) "$not" ib_write_lat -s 8
	label=ib_send_bw run $((20 * scale)) "$not" ib_send_bw -s "$big"
	label=ib_read_bw run $((20 * scale)) "$not" ib_read_bw -s "$big"
	label=ib_atomic_bw run $((10 * scale)) "$not" ib_atomic_bw
}

table() {
	printf '\n%-8s %-8s %-22s %8s  %-22s %s\n' device engine test size result data
	printf '%s\n' "${rows[@]}"
}

finish() {
	table
	[ $failed -eq 0 ] || say "demo: at least one row failed"
	exit $failed
}

native() {
	local answer
	for engine in twin rtl; do
		answer=$("$ordma" run -q --net "demo-$engine-$$" --engine "$engine" -- true 2>&1)
		if [ $? -eq 0 ]; then
			say "demo: engine $engine"
			if [ "$engine" = twin ]; then suite 10 65536; else suite 1 1024; fi
		elif [[ $answer == *"not part of this build"* ]]; then
			say "demo: engine $engine is not part of this build"
		else
			failed=1
			add_row - start - "FAILED" -
			say "$answer"
		fi
	done
	finish
}

# The tests of one guest print their rows; the host adds those of two.
vm() {
	local log
	log=$(mktemp)
	# One VM at a time on a machine: the outer limits leave room for waiting.
	timeout 900 "$ordma" vm -q --timeout 300 -- "$here/demo.sh" --inside | tee "$log"
	[ "${PIPESTATUS[0]}" -eq 0 ] || failed=1
	mapfile -t rows < <(grep -a '^ordma0-1 ' "$log")
	rm -f "$log"
	engine=vm
	local out status
	out=$(timeout 900 "$ordma" vm -q --guests 2 --timeout 180 -- rping -s -a 198.18.0.1 -C 100 -V \
		-- sh -c 'sleep 2; exec rping -c -a 198.18.0.1 -C 100 -V' 2>&1)
	status=$?
	if [ $status -eq 0 ]; then
		add_row 2-guests "rping -V (rdma_cm)" 64 "100 rounds" "checked, both ends"
	else
		failed=1
		add_row 2-guests "rping -V (rdma_cm)" - "FAILED, status $status" -
		printf '%s\n' "$out" | tail -n 12 >&2
	fi
	finish
}

case ${1:-} in
"") native ;;
--vm) vm ;;
--inside)
	inside=1 engine=vm
	suite 1 65536
	finish
	;;
*)
	say "usage: demo.sh [--vm]"
	exit 2
	;;
esac

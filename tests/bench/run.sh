#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Measures natively and in a guest, then writes tables and plots; see README.md.
set -eu
export LC_ALL=C
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${ORDMA_BUILD:-$root/build}
out=$build/bench
ordma=$build/bin/ordma
bench=$build/bin/ordma-bench
native=1 vm=1 rtl=1 commit_results=
slice=200 repeats=5 pings=1000 vm_slice=300

usage() {
	cat <<'TEXT'
usage: tests/bench/run.sh [--quick] [--no-native] [--no-vm] [--no-rtl] [--commit-results]
  --quick           short slices: does it work, not how fast is it
  --commit-results  copy JSON, plots and table to tests/bench/results/
TEXT
}

for arg in "$@"; do
	case $arg in
	--quick) slice=50 repeats=5 pings=100 vm_slice=100 ;;
	--no-native) native= ;;
	--no-vm) vm= ;;
	--no-rtl) rtl= ;;
	--commit-results) commit_results=1 ;;
	--help | -h) usage && exit 0 ;;
	*) usage >&2 && exit 2 ;;
	esac
done
[ -x "$bench" ] && [ -x "$ordma" ] || { echo "run.sh: no $bench; run make build" >&2 && exit 1; }

commit=$(git -C "$root" describe --always --dirty --abbrev=12 2>/dev/null || cat "$root/VERSION")
failed=
mkdir -p "$out"
cd "$out"

attempt() { # what, seconds, command...
	local what=$1 limit=$2 status=0
	shift 2
	echo "== $what"
	timeout -k 5 "$limit" "$@" || status=$?
	[ $status = 0 ] || { failed="$failed $what;" && echo "run.sh: $what: status $status" >&2; }
}

# A network of its own: what else runs on the machine's default network stays out of the numbers.
on_nics() { # engine, command...
	local engine=$1
	shift
	"$ordma" run -q --net "bench-$$-$engine" --engine "$engine" -- "$@"
}

measure() { # engine, options...
	local engine=$1
	shift
	on_nics "$engine" "$bench" --dev ordma0 --peer-dev ordma1 --json "native-$engine.json" \
		--label commit="$commit" --label engine="$engine" --label where=native "$@"
}

# The program and the soft-device each on a core of its own; where the scheduler shares one, latency is its time slice.
pinned() { # options...
	on_nics twin bash -c '
		pid=$(pgrep -f "^[^ ]*ordma-softdev --socket [^ ]*/$1/")
		shift
		taskset -a -p -c 0 "$pid" >/dev/null && exec taskset -c 1 "$@"' - "bench-$$-twin" "$bench" --dev ordma0 --peer-dev ordma1 \
		--json native-twin-pinned.json --label commit="$commit" --label engine=twin --label where="native, pinned" "$@"
}

perftest() { # tool, options...
	"$ordma" pair -q --net "bench-$$-pt" --engine twin -- "$1" -F "${@:2}" >"native-twin.$1.txt" 2>&1 ||
		{ rm -f "native-twin.$1.txt" && return 1; }
}

export -f on_nics measure pinned perftest
export ordma bench commit

if [ $native ]; then
	rm -f native-*.json native-*.txt
	attempt "native, twin" 200 bash -c 'measure twin "$@"' - --slice-ms $slice --repeats $repeats --pings $pings
	if [ "$(nproc)" -ge 2 ]; then
		attempt "native, twin, pinned" 60 bash -c 'pinned "$@"' - --no-baseline --ops WRITE --sizes 8,65536 --slice-ms $slice \
			--repeats $repeats --pings $pings
	fi
	attempt "native, ib_write_bw" 60 bash -c 'perftest "$@"' - ib_write_bw -s 65536 -n 1000
	attempt "native, ib_write_lat" 60 bash -c 'perftest "$@"' - ib_write_lat -s 8 -n 1000
	if [ $rtl ] && [ -n "$("$build/bin/ordma-softdev" --help | grep rtl || true)" ]; then
		attempt "native, rtl" 200 bash -c 'measure rtl "$@"' - --no-baseline --sizes 8,4096,65536 --slice-ms $slice \
			--repeats $repeats --pings 50
	fi
fi
if [ $vm ]; then
	rm -f vm-*.json vm-*.txt
	# Two processors, because perftest's two ends both poll.
	attempt "guest, ordma.ko and rdma_rxe" 620 "$ordma" vm -q --smp 2 --timeout 600 -- bash "$root/tests/bench/guest.sh" \
		"$bench" "$commit" twin --sizes 8,4096,65536,1048576 --ops WRITE,READ --slice-ms $vm_slice --repeats $repeats --pings $pings
fi

"$root/tests/bench/report.py" "$out"
if [ $commit_results ]; then
	mkdir -p "$root/tests/bench/results"
	cp ./*.json ./*.svg ./*.md "$root/tests/bench/results/"
fi
[ -z "$failed" ] || { echo "run.sh: failed:$failed" >&2 && exit 1; }

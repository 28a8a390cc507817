#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The distribution's own verbs programs on two soft NICs, unchanged and with their stock flags. A line per run, then the closing
# line; arguments choose runs by name (shell patterns). Nothing here judges speed.
set -u
root=${ORDMA_ROOT:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${ORDMA_TEST_BUILD:-$root/build}
out=${ORDMA_TEST_OUT:-$build/test}
engine=${ORDMA_TEST_ENGINE:-twin}
ordma=$build/bin/ordma
net=tools-$$
wanted=("$@")
port=$((20000 + $$ % 20000))
passed=0 failed=0 started=$SECONDS
case ${ORDMA_TEST_SCALE:-fast} in
soak) n=5000 ;;
*) n=100 ;;
esac
mkdir -p "$out"
# case_062: all these programs run one after another on the same NICs.
"$ordma" up -q --net "$net" --engine "$engine" >/dev/null || exit 1
trap '"$ordma" down "$net"' EXIT

chosen() { # NAME
	local pattern
	[ ${#wanted[@]} -gt 0 ] || return 0
	for pattern in "${wanted[@]}"; do
		# shellcheck disable=SC2053
		[[ $1 == $pattern ]] && return 0
	done
	return 1
}

verdict() { # NAME STATUS LOG
	if [ "$2" -eq 0 ]; then
		passed=$((passed + 1))
		echo "ok $1 ($((SECONDS - started)) s)"
	else
		failed=$((failed + 1))
		echo "FAIL $1 (status $2, $3)"
		tail -n 20 "$3"
	fi
}

# What the client printed must contain a result, not only end with 0.
has_result() { # LOG
	grep -qE 'iters in|^ *[0-9]+ +[0-9]+ +[0-9.]+' "$1"
}

# pair NAME WRAPPER... -- PROGRAM FLAGS...
pair() {
	local name=$1 log=$out/tools-$1.log status wrapper=()
	shift
	while [ "$1" != -- ]; do wrapper+=("$1"); shift; done
	shift
	chosen "$name" || return 0
	port=$((port + 1)) started=$SECONDS
	timeout 60 ${wrapper[@]+"${wrapper[@]}"} "$ordma" pair -q --net "${pair_net:-$net}" --engine "$engine" -- "$@" -p "$port" >"$log" 2>&1
	status=$?
	if [ "$status" -eq 0 ] && ! has_result "$log"; then status=99; fi
	verdict "$name" "$status" "$log"
}

pingpongs() {
	local gid type flag
	for gid in 0 1; do
		for type in rc uc ud srq; do
			pair "${type}_pingpong-g$gid" -- "ibv_${type}_pingpong" -g "$gid" -n "$n"
			pair "${type}_pingpong-g$gid-e" -- "ibv_${type}_pingpong" -g "$gid" -n "$n" -e
			pair "${type}_pingpong-g$gid-c" -- "ibv_${type}_pingpong" -g "$gid" -n "$n" -c
		done
		# case_089: the default size at the MTU of a plain Ethernet
		pair "rc_pingpong-g$gid-m1024" -- ibv_rc_pingpong -g "$gid" -n "$n" -m 1024
		# Not -t with -e: that takes an event whose CQE an earlier poll took already, which is legal, for an error.
		for flag in -N -t "-N -e"; do
			# shellcheck disable=SC2086
			pair "rc_pingpong-g$gid${flag// /}" -- ibv_rc_pingpong -g "$gid" -n "$n" $flag
		done
	done
}

perftests() {
	local op gid
	for op in write read send atomic; do
		for gid in 0 1; do
			pair "${op}_bw-x$gid" -- "ib_${op}_bw" -F -x "$gid" -n "$n"
			pair "${op}_lat-x$gid" -- "ib_${op}_lat" -F -x "$gid" -n "$n"
		done
		pair "${op}_bw" -- "ib_${op}_bw" -F -n "$n"
		pair "${op}_bw-b" -- "ib_${op}_bw" -F -x 1 -n "$n" -b
		pair "${op}_bw-q4" -- "ib_${op}_bw" -F -x 1 -n "$n" -q 4
		pair "${op}_bw-q4-b" -- "ib_${op}_bw" -F -x 1 -n "$n" -q 4 -b
		pair "${op}_bw-old" -- "ib_${op}_bw" -F -x 1 -n "$n" --use_old_post_send
		pair "${op}_lat-old" -- "ib_${op}_lat" -F -x 1 -n "$n" --use_old_post_send
		pair "${op}_bw-gbits" -- "ib_${op}_bw" -F -x 1 -n "$n" --report_gbits
		pair "${op}_bw-D1" -- "ib_${op}_bw" -F -x 1 -D 1
	done
	for op in write read send; do
		pair "${op}_bw-a" -- "ib_${op}_bw" -F -x 1 -n "$n" -a
		# Both ends and the engine spin, on as many cores as there are: eight megabytes a hundred times is a matter of luck.
		pair "${op}_lat-a" -- "ib_${op}_lat" -F -x 1 -n 5 -a
		pair "${op}_bw-m4096" -- "ib_${op}_bw" -F -x 1 -n "$n" -m 4096
	done
	for op in read send atomic; do
		pair "${op}_bw-e" -- "ib_${op}_bw" -F -x 1 -n "$n" -e
		pair "${op}_lat-e" -- "ib_${op}_lat" -F -x 1 -n "$n" -e
	done
	pair atomic_bw-cas -- ib_atomic_bw -F -x 1 -n "$n" -A CMP_AND_SWAP
	pair send_bw-e-b -- ib_send_bw -F -x 1 -n "$n" -e -b
	pair send_bw-e-b-q16 -- ib_send_bw -F -x 1 -n "$n" -e -b -q 16 # case_017
	pair send_bw-r1 -- ib_send_bw -F -x 1 -n "$n" -r 1             # case_030: one receive at a time
	pair send_bw-srq -- ib_send_bw -F -x 1 -n "$n" --use-srq -q 4
	pair write_lat-I0 -- ib_write_lat -F -x 1 -n "$n" -I 0
	pair write_lat-I448 -- ib_write_lat -F -x 1 -n "$n" -s 448 -I 448 # case_099
}

services() {
	local service op
	for service in UC UD; do
		for op in bw lat; do
			pair "send_$op-c$service" -- "ib_send_$op" -F -x 1 -n "$n" -c "$service"
			pair "send_$op-c$service-e" -- "ib_send_$op" -F -x 1 -n "$n" -c "$service" -e
			pair "send_$op-c$service-x0" -- "ib_send_$op" -F -x 0 -n "$n" -c "$service"
		done
		pair "send_bw-c$service-b" -- ib_send_bw -F -x 1 -n "$n" -c "$service" -b
	done
	for op in bw lat; do
		pair "write_$op-cUC" -- "ib_write_$op" -F -x 1 -n "$n" -c UC
	done
	pair send_bw-cUC-a -- ib_send_bw -F -x 1 -n "$n" -c UC -a
	pair send_bw-cUD-a -- ib_send_bw -F -x 1 -n "$n" -c UD -a
}

# Several programs on the same two NICs at once.
crowd() {
	local log=$out/tools-crowd status=0 pids=() i=0 pid program
	chosen crowd || return 0
	started=$SECONDS
	for program in ib_write_bw ib_read_bw ib_send_bw ib_atomic_bw ib_write_lat ibv_rc_pingpong; do
		i=$((i + 1)) port=$((port + 1))
		local flags="-F -x 1"
		[[ $program == ibv_* ]] && flags="-g 1"
		# shellcheck disable=SC2086
		timeout 120 "$ordma" pair -q --net "$net" -- $program $flags -n $((n * 5)) -p "$port" >"$log.$i.log" 2>&1 &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do wait "$pid" || status=$?; done
	for i in $(seq ${#pids[@]}); do has_result "$log.$i.log" || status=99; done
	cat "$log".*.log >"$log.log"
	verdict crowd "$status" "$log.log"
}

# case_091: users without privileges, and where namespaces are refused.
as_others() {
	local program nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups env -u XDG_RUNTIME_DIR)
	local refused=(/usr/bin/python3 "$root/tests/native/deny.py")
	local both=("${nobody[@]}" "${refused[@]}")
	for program in ib_write_bw ib_send_lat; do
		pair_net=$net-u pair "nobody-$program" "${nobody[@]}" -- $program -F -x 1 -n "$n"
		pair_net=$net-s pair "seccomp-$program" "${refused[@]}" -- $program -F -x 1 -n "$n"
		pair_net=$net-b pair "nobody-seccomp-$program" "${both[@]}" -- $program -F -x 1 -n "$n"
	done
	pair_net=$net-u pair nobody-pingpong-e "${nobody[@]}" -- ibv_rc_pingpong -g 1 -n "$n" -e
	pair_net=$net-s pair seccomp-pingpong-e "${refused[@]}" -- ibv_rc_pingpong -g 1 -n "$n" -e
}

# case_078: UCX finds and uses RC (which needs an SRQ) and UD. The name of each end's NIC is in ORDMA_NIC.
ucx() {
	local log=$out/tools-ucx_info.log kind run='UCX_NET_DEVICES=$ORDMA_NIC:1 UCX_IB_GID_INDEX=1 exec ucx_perftest'
	if chosen ucx_info; then
		started=$SECONDS
		"$ordma" run -q --net "$net" -- ucx_info -d >"$log" 2>&1 && grep -q 'Transport: rc_verbs' "$log" &&
			grep -q 'Transport: ud_verbs' "$log"
		verdict ucx_info $? "$log"
	fi
	for kind in ud_verbs:tag_lat rc_verbs,ud_verbs:tag_bw rc_verbs,ud_verbs:ucp_put_lat rc_verbs,ud_verbs:ucp_get \
		rc_verbs,ud_verbs:ucp_fadd rc_verbs,ud_verbs:stream_bw; do
		local tls=${kind%%:*} test=${kind##*:} name
		name=ucx-${tls%%_*}-$test
		chosen "$name" || continue
		port=$((port + 1)) started=$SECONDS log=$out/tools-$name.log
		local size=4096
		[ "$test" = ucp_fadd ] && size=8
		UCX_TLS=$tls timeout 60 "$ordma" pair -q --net "$net" -- bash -c "$run -p $port" -- \
			bash -c "$run localhost -p $port -t $test -n $n -w 10 -s $size" >"$log" 2>&1 && grep -q '^Final:' "$log"
		verdict "$name" $? "$log"
	done
}

queries() {
	local log=$out/tools-queries.log
	started=$SECONDS
	if chosen devinfo; then
		"$ordma" run -q --net "$net" -- ibv_devinfo -v >"$log" 2>&1 && ! grep -qi invalid "$log" && grep -q 'RoCE v2' "$log" &&
			grep -q 'active_speed' "$log"
		verdict devinfo $? "$log"
	fi
	if chosen devices; then
		"$ordma" run -q --net "$net" -- ibv_devices >"$log" 2>&1 && [ "$(grep -cE 'ordma[01][[:space:]]+[0-9a-f]{16}' "$log")" = 2 ]
		verdict devices $? "$log"
	fi
}

queries
pingpongs
perftests
services
crowd
ucx
[ "$(id -u)" = 0 ] && as_others
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]

#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# guest.sh BENCH COMMIT ENGINE OPTION...: inside the guest, the same measurements on ordma.ko and on rdma_rxe.
# Results go to the current directory. One that fails leaves its file out; the others go on.
bench=$1 commit=$2 engine=$3
shift 3
export LC_ALL=C

# rxe over a veth pair and link-local GIDs: with addresses of its own host the kernel would not use the wire.
modprobe rdma_rxe
ip link add rdma0 type veth peer name rdma1
# The receive queue holds a whole window, or rxe would spend its time in retransmission timers.
sysctl -qw net.core.netdev_max_backlog=16384
for i in 0 1; do
	ip link set rdma$i up
	rdma link add rxe$i type rxe netdev rdma$i || exit 1
done
for _ in $(seq 50); do # until duplicate address detection has ended
	ip -6 addr show dev rdma0 tentative | grep -q inet6 || ip -6 addr show dev rdma1 tentative | grep -q inet6 || break
	sleep 0.2
done

packets() { cat /sys/class/net/rdma1/statistics/rx_packets; }

measure() { # name, device, peer, gid, options...
	local name=$1 device=$2 peer=$3 gid=$4
	shift 4
	rm -f "vm-$name.json"
	timeout 80 "$bench" --dev "$device" --peer-dev "$peer" --gid "$gid" --json "vm-$name.json" \
		--label commit="$commit" --label engine="$name" --label where=guest "$@" || echo "guest.sh: $name: status $?" >&2
}

# Server and client are two processes that both poll.
perftest() { # name, device, peer, gid, tool, options...
	local name=$1 device=$2 peer=$3 gid=$4 tool=$5 server rc
	shift 5
	timeout 40 "$tool" -d "$device" -x "$gid" -F "$@" >/dev/null 2>&1 &
	server=$!
	for _ in $(seq 50); do
		[ -n "$(ss -Hltn 'sport = :18515')" ] && break
		sleep 0.1
	done
	timeout 40 "$tool" -d "$peer" -x "$gid" -F "$@" localhost >"vm-$name.$tool.txt" 2>&1
	rc=$?
	kill $server 2>/dev/null
	wait $server 2>/dev/null
	[ $rc = 0 ] || { echo "guest.sh: $tool on $name: status $rc" >&2 && rm -f "vm-$name.$tool.txt"; }
}

measure "$engine" ordma0 ordma1 1 "$@"
# Within one device rxe hands packets over directly, without the network stack: its best case.
measure rxe-loop rxe0 rxe0 0 "$@"
before=$(packets)
measure rxe rxe0 rxe1 0 "$@"
echo "rxe: $(($(packets) - before)) packets crossed the veth pair"
grep -H . /sys/class/infiniband/rxe0/ports/1/hw_counters/{completer_retry_err,duplicate_request,out_of_seq_request,rcvd_seq_err,retry_exceeded_err,sent_pkts,rcvd_pkts} |
	sed 's|.*/|rxe0 |'
for tool in "ib_write_bw -s 65536 -n 200" "ib_write_lat -s 8 -n 200"; do
	# shellcheck disable=SC2086 # a tool and its options
	perftest "$engine" ordma0 ordma1 1 $tool
	# shellcheck disable=SC2086
	perftest rxe rxe0 rxe1 0 $tool
done
exit 0

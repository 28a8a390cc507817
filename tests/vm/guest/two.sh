#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Two guests with one NIC each: nothing is local, addresses are resolved on the wire, each side has its own kernel.
# shellcheck source=tests/vm/guest/lib.sh
. "$ORDMA_TEST_LIB"
first=198.18.0.1 first6=2001:db8:1::1

ready() { ordma-guest signal "$1"; }
await() { ordma-guest wait "$1" 120; }

if [ "$ORDMA_VM_GUEST" = 1 ]; then
	both() { # name, seconds, command: the client's has the address appended
		local name=$1 limit=$2 pid
		shift 2
		timeout "$limit" "$@" &
		pid=$!
		sleep 2
		ready "$name"
		wait $pid
	}
	arp() {
		ip neigh flush dev "$(netdev_of ordma0)" nud permanent
		udp_echo $first &
		ready arp
		await arp-done
	}
	rc_pingpong() { both pp 90 ibv_rc_pingpong -d ordma0 -g 1 -n 50 -e; }
	write_bw() { both wb 90 ib_write_bw -d ordma0 -x 1 -n 200 -F; }
	rping_cm() { both rp 90 rping -s -a $first -V -C 10; }
	rping_ipv6() { both r6 90 rping -s -a $first6 -V -C 10; }
	ucmatose_cm() { both uc 90 ucmatose -b $first; }
	killed_peer() {
		rping -s -a $first >/tmp/rping.out 2>&1 &
		sleep 2
		ready kp
		await kp-done
		until_true 200 sh -c '[ "$(rdma resource show ordma0 | sed "s/.* qp \([0-9]*\) .*/\1/")" -le 2 ]'
	}
	unload() { rmmod ordma; }
else
	both() {
		local name=$1 limit=$2
		shift 2
		await "$name"
		timeout "$limit" "$@"
	}
	arp() {
		await arp
		ip neigh flush dev "$(netdev_of ordma0)" nud permanent
		udp_ask $first 100
		ready arp-done
	}
	# The management connection of these programs goes over the NIC's own interface.
	rc_pingpong() { both pp 90 ibv_rc_pingpong -d ordma0 -g 1 -n 50 -e $first; }
	write_bw() { both wb 90 ib_write_bw -d ordma0 -x 1 -n 200 -F $first; }
	rping_cm() { both rp 90 rping -c -a $first -V -C 10; }
	rping_ipv6() { both r6 90 rping -c -a $first6 -V -C 10; }
	ucmatose_cm() { both uc 90 ucmatose -s $first; }
	killed_peer() {
		await kp
		rping -c -a $first -V -C 1000000 >/tmp/rping.out 2>&1 &
		sleep 3
		kill -9 $!
		ready kp-done
	}
	unload() { rmmod ordma; }
fi

check arp
check rc_pingpong
check write_bw
check rping_cm
check rping_ipv6
check ucmatose_cm
check killed_peer
check unload
exit 0

# SPDX-License-Identifier: BSD-2-Clause
# For scripts that run in a guest: checks, pairs of programs, counters. `check NAME` runs the function NAME.

out=/tmp/check.out

# In a subshell with -e, so that the first command that fails fails the check. `if` would switch -e off.
check() {
	local rc
	(
		# Nobody outlives its check.
		trap 'kill -9 $(jobs -p) 2>/dev/null || true; wait' EXIT
		set -eu
		"$1"
	) >$out 2>&1
	rc=$?
	if [ $rc -eq 0 ]; then
		echo "ok $1"
	else
		echo "not ok $1: status $rc"
		sed 's/^/    /' $out | tail -n 40
	fi
}

fail() {
	echo "$*"
	exit 1
}

equal() { # what, got, expected
	[ "$2" = "$3" ] || fail "$1: got '$2', expected '$3'"
}

# Waits until a command succeeds; tenths of a second.
until_true() {
	local left=$1
	shift
	until "$@" >/dev/null 2>&1; do
		left=$((left - 1))
		[ $left -gt 0 ] || fail "never true: $*"
		sleep 0.1
	done
}

listening() { # TCP port
	ss -Hltn "sport = :$1" | grep -q .
}

# pair PORT SECONDS SERVER... -- CLIENT...: both must succeed.
pair() {
	local port=$1 limit=$2 server=() pid
	shift 2
	while [ "$1" != -- ]; do
		server+=("$1")
		shift
	done
	shift
	timeout "$limit" "${server[@]}" >/tmp/server.out 2>&1 &
	pid=$!
	if [ "$port" -gt 0 ]; then until_true 100 listening "$port"; else sleep 2; fi
	timeout "$limit" "$@" || fail "client: status $? ($*)"
	wait $pid || { rc=$?; tail -n 20 /tmp/server.out; fail "server: status $rc"; }
}

counter() { # device, name
	cat "/sys/class/infiniband/$1/ports/1/hw_counters/$2"
}

# Datagrams of LENGTH bytes that may not be fragmented, until one comes back.
udp_echo() { # address
	/usr/bin/python3 -c '
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind((sys.argv[1], 7778))
while True: s.sendto(*s.recvfrom(65536))' "$1"
}
udp_ask() { # address, length
	/usr/bin/python3 -c '
import os, socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(0.5); s.setsockopt(socket.IPPROTO_IP, 10, 2)
for _ in range(60):
    data = os.urandom(int(sys.argv[2]))
    try:
        s.sendto(data, (sys.argv[1], 7778))
        if s.recv(65536) == data: sys.exit(0)
    except OSError as e: print(e); time.sleep(0.3)
sys.exit("no answer")' "$1" "$2"
}

resources() { # device
	rdma resource show "$1" | sed 's/^[0-9]*: //'
}

pci_of() { # ib device
	basename "$(readlink "/sys/class/infiniband/$1/device")"
}

netdev_of() { # ib device
	ls "/sys/class/infiniband/$1/device/net"
}

pins() {
	awk '/^nr_foll_pin_acquired/ { a = $2 } /^nr_foll_pin_released/ { r = $2 } END { print a - r }' /proc/vmstat
}

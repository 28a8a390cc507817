#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# One guest, two NICs: processes that die, devices that are taken away, the module that goes and comes.
# shellcheck source=tests/vm/guest/lib.sh
. "$ORDMA_TEST_LIB"
driver=/sys/bus/pci/drivers/ordma
kills=${ORDMA_TEST_KILLS:-5}

# Traffic between the NICs; sets server and client.
traffic() {
	ib_write_bw -d ordma0 -x 1 -D 100 -F >/tmp/server.out 2>&1 &
	server=$!
	until_true 100 listening 18515
	ib_write_bw -d ordma1 -x 1 -D 100 -F 127.0.0.1 >/tmp/client.out 2>&1 &
	client=$!
	moving=$(counter ordma1 tx_packets)
	until_true 200 sh -c "[ \$(cat /sys/class/infiniband/ordma1/ports/1/hw_counters/tx_packets) -gt $((moving + 100)) ]"
}

everything() { resources ordma0 && resources ordma1; }
base=$(everything)
pinned=$(pins)
# The kernel takes a killed process apart after its parent has reaped it.
at_base() { [ "$(everything)" = "$base" ] && [ "$(pins)" = "$pinned" ]; }
has_netdev() { [ -n "$(netdev_of ordma0)" ]; }

case_093_kill() {
	local i
	for i in $(seq "$kills"); do
		traffic
		sleep "0.$((RANDOM % 10))"
		kill -9 $server $client || true
		wait $server $client || true
	done
	until_true 50 at_base
	equal "resources" "$(everything)" "$base"
	equal "pinned pages" "$(pins)" "$pinned"
}

# A context only: the process keeps doorbell pages mapped and waits for events.
watch_device() {
	ibv_asyncwatch -d "$1" >/tmp/watch 2>&1 &
	watcher=$!
	until_true 50 grep -q 'async event FD' /tmp/watch
}

case_094_unbind() {
	local pci start took
	pci=$(pci_of ordma0)
	traffic
	watch_device ordma0
	start=$(date +%s%N)
	echo "$pci" >$driver/unbind
	took=$((($(date +%s%N) - start) / 1000000))
	echo "took $took ms"
	[ $took -lt 5000 ]
	[ ! -e /sys/class/infiniband/ordma0 ]
	until_true 50 grep -q DEVICE_FATAL /tmp/watch
	kill -9 $server $client $watcher || true
	wait $server $client $watcher || true
	equal "pinned pages" "$(pins)" "$pinned"
	echo "$pci" >$driver/bind
	until_true 50 test -e /sys/class/infiniband/ordma0
}

case_094_pci_remove() {
	local pci start
	pci=$(pci_of ordma0)
	watch_device ordma0
	start=$(date +%s)
	echo 1 >"/sys/bus/pci/devices/$pci/remove"
	[ $(($(date +%s) - start)) -lt 5 ]
	until_true 50 grep -q DEVICE_FATAL /tmp/watch
	kill -9 $watcher || true
	echo 1 >/sys/bus/pci/rescan
	until_true 50 test -e /sys/class/infiniband/ordma0
	until_true 50 has_netdev
}

case_094_rmmod() {
	local i
	watch_device ordma0
	rmmod ordma
	until_true 50 grep -q DEVICE_FATAL /tmp/watch
	kill -9 $watcher || true
	wait $watcher || true
	for i in 1 2 3 4 5; do
		insmod "$ORDMA_MODULE"
		test -e /sys/class/infiniband/ordma0 -a -e /sys/class/infiniband/ordma1
		rmmod ordma
	done
	insmod "$ORDMA_MODULE"
	equal "pinned pages" "$(pins)" "$pinned"
}

rmmod_with_interface_up() {
	local i
	for i in 0 1; do
		ip addr add 198.18.0.$((i + 1))/24 dev "$(netdev_of ordma$i)"
		ip link set "$(netdev_of ordma$i)" up
	done
	until_true 50 grep -q c612:0001 /sys/class/infiniband/ordma0/ports/1/gids/1
	rmmod ordma
	! ls -d /sys/class/infiniband/ordma*
	insmod "$ORDMA_MODULE"
}

case_095_open_close() {
	/usr/bin/python3 - "${ORDMA_TEST_OPENS:-300}" <<'PY'
import sys
from pyverbs.device import Context
for _ in range(int(sys.argv[1])):
    Context(name="ordma0").close()
PY
	equal resources "$(everything)" "$base"
}

unload() {
	rmmod ordma
	[ ! -d $driver ]
}

check case_093_kill
check case_094_unbind
check case_094_pci_remove
check case_094_rmmod
check rmmod_with_interface_up
check case_095_open_close
check unload
exit 0

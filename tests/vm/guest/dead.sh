#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The process that is the NIC is killed under traffic; the guest must notice, say so, and let go.
# shellcheck source=tests/vm/guest/lib.sh
. "$ORDMA_TEST_LIB"

ib_write_bw -d ordma0 -x 1 -D 200 -F >/tmp/server.out 2>&1 &
server=$!
until_true 100 listening 18515
ib_write_bw -d ordma1 -x 1 -D 200 -F 127.0.0.1 >/tmp/client.out 2>&1 &
client=$!
rping -s -a 198.18.0.1 >/tmp/rping.out 2>&1 &
rping=$!
ibv_asyncwatch -d ordma0 >/tmp/watch 2>&1 &
watcher=$!
until_true 200 sh -c '[ $(cat /sys/class/infiniband/ordma1/ports/1/hw_counters/tx_packets) -gt 100 ]'
until_true 100 grep -q 'async event FD' /tmp/watch
: >"$ORDMA_TEST_DIR/kill-me"

# The clock must stand still for 5 s before that is a failure; then everybody hears of it.
fatal_event() { until_true 200 grep -q DEVICE_FATAL /tmp/watch; }
port_down() { until_true 50 sh -c 'ibv_devinfo -d ordma0 | grep -q "state:.*PORT_DOWN (1)"'; }
new_context_fails() { ! timeout 10 ibv_rc_pingpong -d ordma0 -g 1 -n 1; }
counters_readable() { counter ordma0 tx_packets; }
processes_die() {
	kill -9 $server $client $rping $watcher || true
	until_true 100 sh -c "! kill -0 $server $client $rping $watcher"
	equal "pinned pages" "$(pins)" 0
}
unload() {
	local start
	start=$(date +%s)
	rmmod ordma
	[ $(($(date +%s) - start)) -lt 10 ]
}

check fatal_event
check port_down
check new_context_fails
check counters_readable
check processes_die
check unload
exit 0

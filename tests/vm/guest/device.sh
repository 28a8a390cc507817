#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# One guest, two NICs: identity, port, GIDs, data paths of user and kernel verbs, resources.
# shellcheck source=tests/vm/guest/lib.sh
. "$ORDMA_TEST_LIB"
A=198.18.0.1 B=198.18.0.2
A6=2001:db8:1::1 B6=2001:db8:1::2

identity() {
	local info
	equal devices "$(ibv_devices | awk '/ordma/ { print $1, length($2) }' | tr '\n' ' ')" "ordma0 16 ordma1 16 "
	info=$(ibv_devinfo -v -d ordma0)
	for line in 'transport:\s+InfiniBand \(0\)' 'phys_port_cnt:\s+1$' 'state:\s+PORT_ACTIVE \(4\)' 'max_mtu:\s+4096 \(5\)' \
		'active_mtu:\s+1024 \(3\)' 'sm_lid:\s+0$' 'port_lid:\s+0$' 'link_layer:\s+Ethernet' 'phys_state:\s+LINK_UP \(5\)' \
		'active_width:\s+4X \(2\)' 'active_speed:\s+25.0 Gbps \(32\)' 'GID\[  0\]:\s+fe80:.*RoCE v2' \
		'GID\[  1\]:\s+::ffff:198.18.0.1, RoCE v2' 'atomic_cap:\s+ATOMIC_HCA' 'fw_ver:\s+[0-9]+\.[0-9]+\.[0-9]+'; do
		grep -qP "$line" <<<"$info" || fail "no line $line in: $info"
	done
	! grep -qP 'fw_ver:\s+0\.0\.0|vendor_id:\s+0x0000|vendor_part_id:\s+0$|_guid:\s+0000:0000:0000:0000' <<<"$info"
}

case_083_guids() {
	local a b
	a=$(cat /sys/class/infiniband/ordma0/node_guid)
	b=$(cat /sys/class/infiniband/ordma1/node_guid)
	[ "$a" != "$b" ] || fail "two devices, one GUID"
	equal sys_image_guid "$(cat /sys/class/infiniband/ordma0/sys_image_guid)" "$a"
}

tools() {
	rdma dev show ordma0 | grep 'node_type ca fw .* node_guid .* sys_image_guid'
	rdma link show ordma0/1 | grep "state ACTIVE physical_state LINK_UP netdev $(netdev_of ordma0)"
	rdma statistic show link ordma0/1 | grep 'tx_packets .* rx_icrc_encapsulated .* rewinds'
	equal rate "$(cat /sys/class/infiniband/ordma0/ports/1/rate)" "100 Gb/sec (4X EDR)"
	ethtool -i "$(netdev_of ordma0)" | grep 'driver: ordma' || [ ! -x /sbin/ethtool ]
}

case_088_gid_table() {
	local port=/sys/class/infiniband/ordma0/ports/1 net before
	net=$(netdev_of ordma0)
	equal type "$(cat $port/gid_attrs/types/0)" "RoCE v2"
	equal ndev "$(cat $port/gid_attrs/ndevs/1)" "$net"
	! cat $port/gid_attrs/types/40
	before=$(head -n 3 $port/gids/0 $port/gids/1 $port/gids/2)
	ip addr add 198.18.7.7/24 dev "$net"
	until_true 50 grep -q c612:0707 $port/gids/3
	ip addr del 198.18.7.7/24 dev "$net"
	until_true 50 grep -q 0000:0000:0000:0000:0000:0000:0000:0000 $port/gids/3
	equal "the others" "$(head -n 3 $port/gids/0 $port/gids/1 $port/gids/2)" "$before"
}

rc_pingpong() {
	local before
	before=$(counter ordma1 rx_packets)
	pair 18515 60 ibv_rc_pingpong -d ordma0 -g 1 -n 50 -- ibv_rc_pingpong -d ordma1 -g 1 -n 50 127.0.0.1
	# Two NICs in one guest: the kernel must not have found a shorter way.
	[ "$(counter ordma1 rx_packets)" -ge $((before + 50)) ] || fail "nothing crossed the fabric"
}
rc_pingpong_events() { pair 18515 60 ibv_rc_pingpong -d ordma0 -g 1 -n 50 -e -- ibv_rc_pingpong -d ordma1 -g 1 -n 50 -e 127.0.0.1; }
case_089_gid_0() { pair 18515 60 ibv_rc_pingpong -d ordma0 -g 0 -n 20 -e -- ibv_rc_pingpong -d ordma1 -g 0 -n 20 -e 127.0.0.1; }
uc_pingpong() { pair 18515 60 ibv_uc_pingpong -d ordma0 -g 1 -n 50 -e -- ibv_uc_pingpong -d ordma1 -g 1 -n 50 -e 127.0.0.1; }
ud_pingpong() { pair 18515 60 ibv_ud_pingpong -d ordma0 -g 1 -n 50 -e -s 1024 -- ibv_ud_pingpong -d ordma1 -g 1 -n 50 -e -s 1024 127.0.0.1; }
srq_pingpong() { pair 18515 60 ibv_srq_pingpong -d ordma0 -g 1 -n 50 -e -q 4 -- ibv_srq_pingpong -d ordma1 -g 1 -n 50 -e -q 4 127.0.0.1; }

perftest() { # program, extra arguments
	local program=$1
	shift
	pair 18515 90 "$program" -d ordma0 -x 1 -n 100 -F "$@" -- "$program" -d ordma1 -x 1 -n 100 -F "$@" 127.0.0.1
}
write_bw() { perftest ib_write_bw; }
read_bw() { perftest ib_read_bw; }
send_bw() { perftest ib_send_bw; }
send_bw_ud() { perftest ib_send_bw -c UD -s 1024; }
atomic_bw() { perftest ib_atomic_bw; }
send_bw_events() { perftest ib_send_bw -e; }
write_bw_cm() { pair 0 90 ib_write_bw -d ordma0 -x 1 -n 100 -F -R -- ib_write_bw -d ordma1 -x 1 -n 100 -F -R --source_ip $B $A; }

case_082_rping() { pair 0 60 rping -s -a $A -V -C 10 -- rping -c -a $A -I $B -V -C 10; }
ucmatose_events() { pair 0 60 ucmatose -b $A -- ucmatose -s $A -b $B; }
udaddy_datagrams() { pair 0 60 udaddy -b $A -- udaddy -s $A -b $B; }
case_080_multicast() { pair 0 60 mckey -m 239.1.2.3 -b $A -C 5 -- mckey -m 239.1.2.3 -b $B -C 5 -s; }

case_034_mtu_follows() {
	local net pair
	net=$(netdev_of ordma0)
	for pair in 1500:1024 2143:1024 2144:2048 4191:2048 4192:4096 "$max_mtu:4096" 1500:1024; do
		ip link set "$net" mtu ${pair%:*}
		ibv_devinfo -d ordma0 | grep -q "active_mtu:.*${pair#*:} (" || fail "mtu ${pair%:*}: $(ibv_devinfo -d ordma0 | grep active_mtu)"
	done
}

link_down_and_up() {
	local net
	net=$(netdev_of ordma0)
	ibv_asyncwatch -d ordma0 >/tmp/watch 2>&1 &
	until_true 50 grep -q 'async event FD' /tmp/watch
	ip link set "$net" down
	until_true 50 grep -q PORT_ERR /tmp/watch
	ibv_devinfo -d ordma0 | grep 'state:.*PORT_DOWN (1)'
	ip link set "$net" up
	until_true 50 grep -q PORT_ACTIVE /tmp/watch
	ibv_devinfo -d ordma0 | grep 'state:.*PORT_ACTIVE (4)'
	# The interface lost its addresses' neighbours; later checks need them.
	ip addr add $A6/64 dev "$net" nodad 2>/dev/null || true
	for other in $B $B6; do
		ip neigh replace $other lladdr "$(cat "/sys/class/net/$(netdev_of ordma1)/address")" dev "$net" nud permanent
	done
	until_true 50 grep -q c612:0001 /sys/class/infiniband/ordma0/ports/1/gids/1
	pair 18515 60 ibv_rc_pingpong -d ordma0 -g 1 -n 10 -e -- ibv_rc_pingpong -d ordma1 -g 1 -n 10 -e 127.0.0.1
}

vlan() {
	local i net other mac=()
	for i in 0 1; do
		net=$(netdev_of ordma$i)
		mac+=("$(cat "/sys/class/net/$net/address")")
		ip link add link "$net" name vlan$i type vlan id 5
		ip addr add 198.18.5.$((i + 1))/24 dev vlan$i
		ip link set vlan$i up
	done
	for i in 0 1; do
		other=$((1 - i))
		ip neigh replace 198.18.5.$((other + 1)) lladdr "${mac[$other]}" dev vlan$i nud permanent
	done
	until_true 50 grep -q c612:0501 /sys/class/infiniband/ordma0/ports/1/gids/*
	until_true 50 grep -q c612:0502 /sys/class/infiniband/ordma1/ports/1/gids/*
	pair 0 60 rping -s -a 198.18.5.1 -V -C 5 -- rping -c -a 198.18.5.1 -I 198.18.5.2 -V -C 5
	ip link del vlan0
	ip link del vlan1
	until_true 50 sh -c '! grep -q c612:0501 /sys/class/infiniband/ordma0/ports/1/gids/*'
}

case_040_memlock() {
	(
		ulimit -l 64
		setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set -all --inh-caps -all /usr/bin/python3 - <<'PY'
import errno
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError
pd = PD(Context(name="ordma0"))
MR(pd, 16384, 1)
try:
    MR(pd, 1 << 20, 1)
except PyverbsRDMAError as e:
    assert e.error_code == errno.ENOMEM, e
else:
    raise SystemExit("a MiB was pinned under a limit of 64 KiB")
PY
	)
}

interface() {
	local i net
	ip netns add far
	net=$(netdev_of ordma1)
	ip link set "$net" netns far
	ip netns exec far ip addr add $B/24 dev "$net"
	ip netns exec far ip link set "$net" mtu "$max_mtu" up
	ip link set "$(netdev_of ordma0)" mtu "$max_mtu"
	ip neigh del $B dev "$(netdev_of ordma0)"
	ip netns exec far bash -c ". $ORDMA_TEST_LIB; udp_echo $B" &
	udp_ask $B 10
	udp_ask $B $((max_mtu - 28))
	ip netns exec far /usr/bin/python3 -c '
import socket, hashlib
s = socket.create_server(("198.18.0.2", 7777)); c, _ = s.accept(); h = hashlib.sha256(); n = 0
while d := c.recv(65536): h.update(d); n += len(d)
print(n, h.hexdigest())' >/tmp/tcp.server &
	i=$!
	until_true 50 ip netns exec far ss -Hltn 'sport = :7777'
	sleep 1
	/usr/bin/python3 -c '
import socket, hashlib, random
d = random.Random(1).randbytes(4 << 20); c = socket.create_connection(("198.18.0.2", 7777)); c.sendall(d); c.close()
print(len(d), hashlib.sha256(d).hexdigest())' >/tmp/tcp.client
	wait $i
	cmp /tmp/tcp.client /tmp/tcp.server
}

max_mtu=$(ip -d link show dev "$(netdev_of ordma0)" | grep -o 'maxmtu [0-9]*' | cut -d' ' -f2)
base0=$(resources ordma0) base1=$(resources ordma1)
case_093_resources() {
	equal ordma0 "$(resources ordma0)" "$base0"
	equal ordma1 "$(resources ordma1)" "$base1"
	equal "pinned pages" "$(pins)" 0
	for name in drop_malformed drop_address drop_qkey drop_opcode db_refused cq_overflows driver_events_bad driver_rsp_bad \
		driver_destroy_errors rx_icrc_encapsulated; do
		equal $name "$(counter ordma0 $name) $(counter ordma1 $name)" "0 0"
	done
}

check identity
check case_083_guids
check tools
check case_088_gid_table
check rc_pingpong
check rc_pingpong_events
check case_089_gid_0
check uc_pingpong
check ud_pingpong
check srq_pingpong
check write_bw
check read_bw
check send_bw
check send_bw_ud
check atomic_bw
check send_bw_events
check write_bw_cm
check case_082_rping
check ucmatose_events
check udaddy_datagrams
check case_080_multicast
check case_034_mtu_follows
check link_down_and_up
check vlan
check case_040_memlock
check case_093_resources
check interface
exit 0

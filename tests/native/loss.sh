#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The [loss] verbs tests on fabrics with faults, one network each. A line per fabric and the closing line; ORDMA_TEST_SEED (default
# 1) seeds them all. Each run must also show by counters that its faults happened.
#
# No fabric is so bad that eight sends of one packet in a row are likely to be lost: that would be RETRY_EXC by right.
set -u
root=${ORDMA_ROOT:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${ORDMA_TEST_BUILD:-$root/build}
out=${ORDMA_TEST_OUT:-$build/test}
engine=${ORDMA_TEST_ENGINE:-twin}
seed=${ORDMA_TEST_SEED:-1}
passed=0 failed=0
mkdir -p "$out"

# run NAME GID FABRIC COUNTERS
run() {
	local name=$1 net=loss-$1-$$ log=$out/loss-$1.log
	local stat="$build/bin/ordma stat --net $net --all"
	if ORDMA_TEST_GID=$2 ORDMA_TEST_EXPECT=$4 ORDMA_TEST_STAT=$stat timeout "${ORDMA_LOSS_TIMEOUT:-300}" \
		"$build/bin/ordma" run -q --net "$net" --engine "$engine" --fabric "$3" --seed "$seed" -- \
		"$build/bin/test_verbs" '[loss]' >"$log" 2>&1; then
		passed=$((passed + 1))
		echo "ok $name ($3, seed $seed)"
	else
		failed=$((failed + 1))
		echo "FAIL $name; replay: ORDMA_TEST_SEED=$seed ORDMA_TEST_SCALE=${ORDMA_TEST_SCALE:-fast} $0 $name"
		tail -n 25 "$log"
	fi
}

fabrics() {
	cat <<-END
		loss-0.1 1 loss=0.001,dup=0.05 duplicate_request
		loss-1 1 loss=0.01,dup=0.05 retransmitted_packets,packet_seq_err,duplicate_request
		loss-1-ipv6 0 loss=0.01,dup=0.05 retransmitted_packets,packet_seq_err,duplicate_request
		loss-10 1 loss=0.1,dup=0.05 retransmitted_packets,packet_seq_err,implied_nak_seq_err,local_ack_timeout_err
		burst 1 burst_loss=0.002:0.8 retransmitted_packets
		reorder 1 reorder=0.2:50us out_of_sequence
		corrupt 1 corrupt=0.01 rx_icrc_encapsulated,retransmitted_packets
		acks-lost 1 ordma1:ordma0/loss=0.15 duplicate_request,local_ack_timeout_err
		delay 1 delay_ns=200us,jitter_ns=100us rx_packets
	END
}

while read -r name gid fabric counters; do
	if [ $# -eq 0 ] || [[ " $* " == *" $name "* ]]; then run "$name" "$gid" "$fabric" "$counters" </dev/null; fi
done < <(fabrics)
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]

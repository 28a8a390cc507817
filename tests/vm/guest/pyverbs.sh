#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# rdma-core's own tests on the kernel driver. A test that is skipped says EOPNOTSUPP; one that fails has no excuse.
# shellcheck source=tests/vm/guest/lib.sh
. "$ORDMA_TEST_LIB"

suite() {
	mkdir -p /tmp/pyverbs
	cp -r /usr/share/doc/rdma-core/tests /tmp/pyverbs/
	cd /tmp/pyverbs/tests
	gunzip -f ./*.gz
	timeout 800 /usr/bin/python3 run_tests.py --dev ordma0 --gid 1 -v >/tmp/pyverbs.out 2>&1 || true
	grep -A 12 '^\(FAIL\|ERROR\):' /tmp/pyverbs.out || true
	tail -n 4 /tmp/pyverbs.out
	grep -q '^Ran 273 tests' /tmp/pyverbs.out
	# Traffic really ran: that many skips and no more.
	[ "$(grep -c ' \.\.\. ok$' /tmp/pyverbs.out)" -ge 80 ]
	! grep -q '^\(FAIL\|ERROR\):' /tmp/pyverbs.out
}

clean_after() {
	equal resources "$(resources ordma0)" "ordma0: pd 1 cq 1 qp 1 cm_id 0 mr 0 ctx 0 srq 0 "
	equal "pinned pages" "$(pins)" 0
}

check suite
check clean_after
exit 0

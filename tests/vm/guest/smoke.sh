#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The shortest way through the driver, for every kernel it builds for.
# shellcheck source=tests/vm/guest/lib.sh
. "$ORDMA_TEST_LIB"

devices() { equal devices "$(ibv_devices | grep -c ordma)" 2; }
rc_pingpong() { pair 18515 60 ibv_rc_pingpong -d ordma0 -g 1 -n 50 -e -- ibv_rc_pingpong -d ordma1 -g 1 -n 50 -e 127.0.0.1; }
ud_pingpong() { pair 18515 60 ibv_ud_pingpong -d ordma0 -g 1 -n 50 -e -s 1024 -- ibv_ud_pingpong -d ordma1 -g 1 -n 50 -e -s 1024 127.0.0.1; }
write_bw() { pair 18515 90 ib_write_bw -d ordma0 -x 1 -n 100 -F -- ib_write_bw -d ordma1 -x 1 -n 100 -F 127.0.0.1; }
rping_cm() { pair 0 60 rping -s -a 198.18.0.1 -V -C 5 -- rping -c -a 198.18.0.1 -I 198.18.0.2 -V -C 5; }
unload_with_context() {
	ibv_asyncwatch -d ordma0 >/tmp/watch 2>&1 &
	until_true 50 grep -q 'async event FD' /tmp/watch
	rmmod ordma
	until_true 50 grep -q DEVICE_FATAL /tmp/watch
	equal "pinned pages" "$(pins)" 0
}

check devices
check rc_pingpong
check ud_pingpong
check write_bw
check rping_cm
check unload_with_context
exit 0

#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Proves that the driver core is kernel code: compiles kernel/core/*.c against kernel headers with
# W=1 and sparse (C=2), warnings as errors, for every kernel whose headers are present. The check
# module has no glue, so unresolved symbols of the core would show as well.
set -euo pipefail

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
BUILD=${BUILD:-$TOP/build}
WORK=$BUILD/core-kernel

compile() { # name, headers
	local dir=$WORK/$1 log=$WORK/$1.log
	rm -rf "$dir"
	mkdir -p "$dir"
	cp "$TOP"/kernel/core/*.[ch] "$dir/"
	cat >"$dir/check_main.c" <<'SRC'
// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <linux/module.h>
MODULE_LICENSE("Dual BSD/GPL");
SRC
	(cd "$dir" && echo "obj-m := core_check.o" &&
		echo "core_check-y := $(printf '%s ' ./*.c | sed 's|\./||g; s|\.c |.o |g')" &&
		echo "ccflags-y := -Werror -I\$(src)") >"$dir/Kbuild"
	if ! timeout 300 make -C "$2" M="$dir" W=1 C=2 CF="-Wsparse-error" modules >"$log" 2>&1 ||
		grep -qE 'warning:|error:' "$log"; then
		cat "$log" >&2
		echo "kernel-compile: $1: FAILED" >&2
		return 1
	fi
	echo "kernel-compile: $1: $(grep -c '^  CHECK' "$log") files, W=1 and sparse clean"
}

seen=" " count=0
for headers in /lib/modules/*/build "$BUILD"/kernel/*/headers; do
	[ -f "$headers/Makefile" ] || continue
	release=$(make -s -C "$headers" kernelrelease 2>/dev/null | tail -1)
	[[ $seen == *" $release "* ]] && continue
	seen+="$release "
	compile "$release" "$headers"
	count=$((count + 1))
done
if [ "$count" = 0 ]; then
	echo "kernel-compile: no kernel headers; run tools/setup.sh" >&2
	exit 1
fi
echo "$count passed, 0 failed"

#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Builds ordma.ko in build/module/VERSION, a mirror of symbolic links, so that kbuild leaves no object beside a source.
set -euo pipefail

usage() {
	cat <<'TEXT'
usage: kernel/build-module.sh [--kernel 6.1|6.12 | --headers DIR] [MAKE-ARGUMENT...]
  (no option)      the guest kernel 6.1 that tools/setup.sh fetched; output build/module/6.1/ordma.ko
  --kernel 6.12    the same for 6.12
  --headers DIR    another prepared kernel build directory, e.g. /lib/modules/$(uname -r)/build; output build/module/host/ordma.ko
  MAKE-ARGUMENT    e.g. W=1 C=2 for the warnings and sparse
TEXT
}

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
BUILD=${BUILD:-$TOP/build}
kernel=6.1 headers=
while [ $# -gt 0 ]; do
	case $1 in
	--kernel) kernel=$2 && shift 2 ;;
	--headers) headers=$2 kernel= && shift 2 ;;
	-h | --help) usage && exit 0 ;;
	-*) usage >&2 && exit 2 ;;
	*) break ;;
	esac
done
mirror=$BUILD/module/${kernel:-host}
headers=$(realpath -e "${headers:-$BUILD/kernel/$kernel/headers}") ||
	{ echo "build-module: no headers for kernel $kernel; run tools/setup.sh --kernel $kernel" >&2 && exit 1; }

mkdir -p "$mirror/kernel"
find "$mirror" -xtype l -delete
ln -sf "$TOP/Kbuild" "$TOP/VERSION" "$mirror/"
for part in core ib uapi; do
	cp -rsf "$TOP/kernel/$part" "$mirror/kernel/"
done
exec make --no-print-directory -C "$headers" M="$mirror" "$@" modules

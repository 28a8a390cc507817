#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Lays out the rdma-core headers that libibverbs-dev does not install, so that the provider
# compiles outside the rdma-core tree:
#   providers/ordma/prepare-headers.sh [OUT]        then  cc -isystem OUT -Ikernel/uapi ...
# OUT (default build/provider-inc) is ignored by git: links into the fetched source tree, and what
# rdma-core's own build would generate. Running it again changes only what differs.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../.." && pwd)
src=${RDMA_CORE_SRC:-$top/build/rdma-core-src}
out=${1:-$top/build/provider-inc}
own_abi=$top/kernel/uapi/rdma/ordma-abi.h

die() {
	printf 'prepare-headers: %s\n' "$*" >&2
	exit 1
}

[ -f "$src/libibverbs/driver.h" ] || die "no rdma-core sources in $src; the cure is: tools/setup.sh"
src=$(cd "$src" && pwd)

# The private ABI number is part of every symbol a provider binds to: the sources' and the
# installed library's must be the same, or the provider would build and then never load.
pabi=$(sed -n 's/^set(IBVERBS_PABI_VERSION "\([0-9]*\)")$/\1/p' "$src/CMakeLists.txt")
[ -n "$pabi" ] || die "$src/CMakeLists.txt names no IBVERBS_PABI_VERSION"
library=$(cc -print-file-name=libibverbs.so)
[ -f "$library" ] || die "libibverbs-dev is not installed; the cure is: tools/setup.sh"
grep -qa "IBVERBS_PRIVATE_$pabi" "$library" ||
	die "the installed libibverbs does not have private ABI $pabi; set RDMA_CORE_SRC to a matching release"

# infiniband/verbs.h and the other public headers stay the installed ones: structure sizes in the
# provider must be those of the library it runs under.
link() { # directory in OUT, file...
	local dir=$out/$1 file
	shift
	mkdir -p "$dir"
	for file in "$@"; do ln -sfn "$file" "$dir/"; done
}
link infiniband "$src"/libibverbs/{driver,kern-abi,cmd_ioctl,cmd_write,marshall}.h
link ccan "$src"/ccan/*.h
link util "$src"/util/*.h
link rdma "$src"/kernel-headers/rdma/{ib_user_*,rdma_*}.h

put() { # file, from standard input; unchanged contents keep their time stamp
	mkdir -p "$(dirname "$1")"
	cat >"$1.new"
	if cmp -s "$1.new" "$1"; then rm "$1.new"; else mv "$1.new" "$1"; fi
}

abi_structs() { # header
	python3 "$src/buildlib/make_abi_structs.py" "$1" /dev/stdout | put "$out/kernel-abi/$(basename "$1")"
}
abi_structs "$src/kernel-headers/rdma/ib_user_verbs.h"
if [ -f "$own_abi" ]; then abi_structs "$own_abi"; fi

put "$out/config.h" <<TEXT
#pragma once
#define HAVE_STATEMENT_EXPR 1
#define HAVE_BUILTIN_TYPES_COMPATIBLE_P 1
#define HAVE_TYPEOF 1
#define HAVE_ISBLANK 1
#define HAVE_BUILTIN_CLZ 1
#define HAVE_BUILTIN_CLZL 1
#define HAVE_FUNC_ATTRIBUTE_ALWAYS_INLINE 1
#define HAVE_FULL_SYMBOL_VERSIONS 1
#define HAVE_FUNC_ATTRIBUTE_SYMVER 1
#define SIZEOF_LONG 8
#define VERBS_IOCTL_ONLY 0
#define VERBS_WRITE_ONLY 0
#define IBVERBS_PABI_VERSION $pabi
TEXT

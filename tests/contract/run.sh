#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# All contract tests. BUILD_DIR (default build/contract) takes programs and each test's log.
set -u
cd "$(dirname "$0")/../.." || exit 1
out=${BUILD_DIR:-build/contract}
mkdir -p "$out"
out=$(cd "$out" && pwd)
py=/usr/bin/python3
vectors=tests/contract/vectors.txt
warn="-Wall -Wextra -Werror -Wshadow"
passed=0 failed=0 skipped=0

# t NAME COMMAND...: one test; exit status 77 means that the machine lacks what it needs.
t() {
	local name=$1 log="$out/$1.log" rc
	shift
	timeout 300 "$@" >"$log" 2>&1 </dev/null
	rc=$?
	case $rc in
	0) passed=$((passed + 1)) && echo "ok    $name" ;;
	77) skipped=$((skipped + 1)) && echo "skip  $name: $(tail -n1 "$log")" ;;
	*) failed=$((failed + 1)) && echo "FAIL  $name (status $rc, $log)" && tail -n 15 "$log" ;;
	esac
}

refuses() { # COMMAND...: the command must fail
	! "$@"
}

cc_view() { # SUFFIX COMPILER...: compiles and runs roundtrip.c
	local exe="$out/roundtrip_$1"
	shift
	"$@" $warn -O2 -Ikernel/core "$out/roundtrip.c" -o "$exe" && "$exe"
}

cpp_view() {
	g++ -std=c++20 $warn -Wconversion -g -O1 -fsanitize=address,undefined \
		-fno-sanitize-recover=all -Ihw/model tests/contract/roundtrip.cpp \
		-o "$out/roundtrip_cpp" && "$out/roundtrip_cpp" "$vectors"
}

sv_view() {
	verilator --binary -Wall -Wno-STMTDLY --timescale 1ns/1ns --CFLAGS -O0 -j 1 \
		--Mdir "$out/verilated" --top-module roundtrip \
		hw/rtl/lint.vlt hw/rtl/ordma_hw_pkg.sv "$out/roundtrip.sv" &&
		"$out/verilated/Vroundtrip"
}

yosys_view() {
	yosys -e 'used but has no driver|implicitly declared' \
		-p "read_verilog -sv hw/rtl/ordma_hw_pkg.sv $out/prove.sv" \
		-p "hierarchy -check; proc; opt_clean; script $out/prove.ys"
}

wrong_vector_is_noticed() { # one flipped bit in the bytes of one vector
	local dir="$out/wrong"
	mkdir -p "$dir"
	awk '/^v / && ++n == 2 { sub(/.$/, /0$/ ? "1" : "0") } 1' "$vectors" >"$dir/vectors.txt"
	[ "$(diff "$vectors" "$dir/vectors.txt" | grep -c '^>')" = 1 ] || return 1
	$py tests/contract/gen_roundtrip.py "$dir/vectors.txt" "$dir" || return 1
	gcc -std=c11 -O0 -Ikernel/core "$dir/roundtrip.c" -o "$dir/roundtrip" || return 1
	! "$dir/roundtrip" && ! "$out/roundtrip_cpp" "$dir/vectors.txt"
}

wrong_struct_is_refused() {
	local head='#include "ordma_hw.h"
int main(void) { struct ordma_wqe x = { { 0 } };'
	echo "$head return (int)ORDMA_GET(&x, WQE_OPCODE); }" |
		gcc -std=c11 $warn -Ikernel/core -fsyntax-only -x c - || return 1
	for cc in "gcc -std=c11 -x c" "g++ -std=c++20 -x c++"; do
		echo "$head return (int)ORDMA_GET(&x, CQE_STATUS); }" |
			refuses $cc $warn -Ikernel/core -fsyntax-only - || return 1
	done
}

kernel_view() { # FLAGS: the header in a module, with sparse when it is installed
	local kdir
	kdir=${KDIR:-$(ls -d /lib/modules/*/build /usr/src/linux-headers-*-amd64 | head -n1)}
	[ -n "$kdir" ] || { echo "no kernel headers"; return 77; }
	command -v sparse || { echo "no sparse"; return 77; }
	rm -rf "$out/kmod" && cp -r tests/contract/kmod "$out/kmod"
	make -C "$kdir" M="$out/kmod" HW_INCLUDE="$PWD/kernel/core" HWTEST_FLAGS="$1" C=2 W=1 \
		modules >"$out/kmod.out" 2>&1 || { cat "$out/kmod.out"; return 1; }
	cat "$out/kmod.out"
	! grep -E 'warning|error' "$out/kmod.out"
}

sparse_refuses_mixed_endian() {
	kernel_view -DHWTEST_SPARSE_MUST_REFUSE
	case $? in
	77) return 77 ;;
	0) return 1 ;;
	esac
	grep -q 'restricted __le64' "$out/kmod.out"
}
export -f cc_view cpp_view sv_view yosys_view kernel_view refuses sparse_refuses_mixed_endian \
	wrong_struct_is_refused wrong_vector_is_noticed
export out py vectors warn

fn() { # NAME FUNCTION ARGS...: a test that is a function of this file
	local name=$1
	shift
	t "$name" bash -c '"$@"' bash "$@"
}

t hwgen_unit $py tests/contract/test_hwgen.py
t fresh $py tools/hwgen/hwgen.py --check
t headers_byte_equal cmp kernel/core/ordma_hw.h providers/ordma/ordma_hw.h
t headers_match_scapy $py tests/contract/test_headers.py
t tidy $py tests/contract/tidy.py
t generate_roundtrip $py tests/contract/gen_roundtrip.py "$vectors" "$out"
fn roundtrip_c11 cc_view c11 gcc -std=c11 -pedantic
fn roundtrip_cxx20 cc_view cxx20 g++ -x c++ -std=c++20
fn roundtrip_cpp_view cpp_view
fn roundtrip_verilator sv_view
fn prove_yosys yosys_view
fn wrong_vector_is_noticed wrong_vector_is_noticed
fn wrong_struct_is_refused wrong_struct_is_refused
fn kernel_module kernel_view ""
fn sparse_refuses_mixed_endian sparse_refuses_mixed_endian
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]

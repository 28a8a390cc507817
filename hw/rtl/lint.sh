#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Every block alone through both front ends: Verilator with all warnings as errors (waivers and
# their reasons in lint.vlt), and Yosys (hierarchy, processes, consistency). usage: lint.sh [BLOCK...]
cd "$(dirname "$0")" || exit 1
passed=0
failed=0
skipped=0
log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT

# A driverless or implicitly declared signal is only a warning to Yosys, but always our mistake.
fatal='used but has no driver|implicitly declared|Resizing cell port|multiple conflicting drivers'

result() {  # name, tool, status, log
  if [ "$3" -eq 0 ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAIL $1 ($2)"
    sed -n 1,12p "$4"
  fi
}

yosys_files() {  # the module and what it instantiates, by name of file
  echo "$1" > "$log/todo"
  : > "$log/files"
  while [ -s "$log/todo" ]; do
    module=$(head -n 1 "$log/todo")
    sed -i 1d "$log/todo"
    file=$(ls "$module.sv" "prim/$module.sv" 2>/dev/null | head -n 1)
    [ -n "$file" ] || continue
    grep -qx "$file" "$log/files" && continue
    echo "$file" >> "$log/files"
    sed -n 's/^ *\(ordma_[a-z0-9_]*\) \(#(.*\)\?u_.*/\1/p; s/^ *\(ordma_[a-z0-9_]*\) #($/\1/p' "$file" >> "$log/todo"
  done
  tr '\n' ' ' < "$log/files"
}

blocks=$*
if [ -z "$blocks" ]; then
  blocks=$(ls prim/ordma_*.sv ordma_*.sv | grep -v '_pkg\.sv$' | xargs -n 1 basename | sed 's/\.sv$//')
fi
for block in $blocks; do
  if command -v verilator > /dev/null; then
    verilator --lint-only -Wall -y . -y prim +libext+.sv lint.vlt ordma_hw_pkg.sv ordma_pkg.sv \
      --top-module "$block" "$block" > "$log/v" 2>&1
    result "$block" verilator $? "$log/v"
    if [ "$block" = ordma_crc32 ]; then
      # The form that is synthesised; Verilator takes the other one by itself.
      verilator --lint-only -Wall -GTABLE=0 lint.vlt --top-module "$block" prim/ordma_crc32.sv > "$log/v" 2>&1
      result "$block" "verilator, masks" $? "$log/v"
    fi
  else
    skipped=$((skipped + 1))
  fi
  if command -v yosys > /dev/null; then
    files=$(yosys_files "$block")
    yosys -q -e "$fatal" -p "read_verilog -sv ordma_hw_pkg.sv ordma_pkg.sv $files; \
      hierarchy -check -top $block; proc; check -assert" > "$log/y" 2>&1
    result "$block" yosys $? "$log/y"
  else
    skipped=$((skipped + 1))
  fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]

# SPDX-License-Identifier: BSD-2-Clause
# The front door. `make demo` and `make check` do everything on a fresh Debian 12; the rest are parts of them.
BUILD   ?= build
JOBS    ?= $(shell nproc)
PREFIX  ?= /usr
DESTDIR ?=
RUN     := tests/run.py

.PHONY: all help setup build module demo demo-vm check check-fast check-fresh soak bench gen gen-check rtl-lint asan install clean
all: build

help:
	@echo "make demo         two soft NICs, the distribution's own verbs programs on them, a table of results"
	@echo "make demo-vm      the same programs and rdma_cm in a VM on the real ordma.ko"
	@echo "make check        all tests (CI); check-fast: the quick tier; soak: hours; check-fresh: in a new Debian 12"
	@echo "make bench        measurements as JSON and plots under $(BUILD)/bench"
	@echo "make build        everything that is compiled; module: the kernel module; gen: the contract's outputs"
	@echo "make rtl-lint     Verilator and Yosys on every RTL block; asan: tests under ASan and UBSan"
	@echo "make install      DESTDIR=$(DESTDIR) PREFIX=$(PREFIX)"

setup:
	@tools/setup.sh

$(BUILD)/build.ninja: CMakeLists.txt
	cmake -G Ninja -S . -B $(BUILD) $(CMAKE_ARGS)

build: setup $(BUILD)/build.ninja
	ninja -C $(BUILD) -j $(JOBS)

module: setup
	kernel/build-module.sh

demo: build
	@tools/cli/demo.sh

demo-vm: build module
	@tools/cli/demo.sh --vm

check: build module
	$(RUN) --tier check
check-fast: build
	$(RUN) --tier fast
soak: build module
	$(RUN) --tier soak --time 86400
check-fresh:
	tests/fresh/check-fresh.sh
bench: build module
	tests/bench/run.sh

gen:
	tools/hwgen/hwgen.py
gen-check:
	tools/hwgen/hwgen.py --check
rtl-lint:
	hw/rtl/lint.sh
asan:
	tests/asan.sh

install: build
	DESTDIR=$(DESTDIR) cmake --install $(BUILD) --prefix $(PREFIX)
clean:
	rm -rf $(BUILD)

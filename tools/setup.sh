#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Brings a Debian 12 machine to the point where everything here builds and every test can run.
# Idempotent: with nothing missing it touches neither the network nor the package system.
# shellcheck disable=SC2016 # the variables in the single-quoted formats are dpkg's and apt's
set -euo pipefail

usage() {
	cat <<'TEXT'
usage: tools/setup.sh [--check | --fetch-only] [--kernel 6.12]
  (no option)    install missing Debian packages, then fetch what the packages cannot give
  --check        report what is missing and exit 1 if anything is; change nothing
  --fetch-only   no packages, only the downloads
  --kernel 6.12  also the newer kernel of bookworm-backports (headers to build with, image to boot)
Environment:
  RDMA_CORE_SRC=DIR  an unpacked rdma-core source tree to use in place of the download
Exit status: 0 all present, 1 something is missing or failed, 75 a download failed (try again later).
TEXT
}

# "group|why it is here|packages"
readonly PACKAGES=(
	"build|compilers, build tools, the C library's headers, a compiler cache|build-essential g++ make ccache cmake ninja-build pkg-config git ca-certificates python3 xz-utils"
	"lint|warnings, sanitizers and style in CI|clang clang-tidy clang-format libclang-rt-14-dev sparse shellcheck"
	"kernel|kernel headers to build ordma.ko with; modinfo, depmod, insmod|linux-headers-amd64 kmod"
	"verbs|provider and programs link to these|libibverbs-dev librdmacm-dev libnl-3-dev libnl-route-3-dev"
	"verbs tools|the programs an RDMA user runs, as tests|ibverbs-providers ibverbs-utils rdmacm-utils rdma-core perftest ucx-utils infiniband-diags python3-pyverbs iproute2"
	"libraries|command line, settings, text, JSON, checksums|libcli11-dev libtomlplusplus-dev libfmt-dev libspdlog-dev nlohmann-json3-dev libisal-dev zlib1g-dev libseccomp-dev"
	"tests|unit tests, independent packet oracles, system call traces, plots|catch2 python3-scapy tshark strace gnuplot-nox"
	"rtl|lint, simulate, synthesise and prove the RTL|verilator yosys cvc5"
	"vm|guests with the real kernel module, and a fresh Debian to test the set-up in|qemu-system-x86 busybox-static debootstrap"
)

# One release of rdma-core gives the private provider headers; they compile against any installed
# libibverbs of the same private ABI. The sum is that of the upstream archive as Debian ships it.
readonly RDMA_CORE_SUITE=trixie
readonly RDMA_CORE_VERSION=56.1-1
readonly RDMA_CORE_SHA256=63ce7f2baa7242c2dbc76375dac957c420187dd27f8c5e148efc07971ee522a8

readonly EX_FETCH=75
TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly TOP BUILD=$TOP/build CACHE=$TOP/build/cache
readonly KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

say() { printf 'setup: %s\n' "$*"; }

die() { # status, what, cure
	printf 'setup: %s\n' "$2" >&2
	[ $# -lt 3 ] || printf 'setup: %s\n' "$3" >&2
	exit "$1"
}

as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		die 1 "not root, and there is no sudo" "run as root: $*"
	fi
}

refresh_done=
refresh_lists() {
	[ -z "$refresh_done" ] || return 0
	as_root apt-get -q update ||
		die "$EX_FETCH" "apt-get update failed" "check the network and the apt sources, then run this again"
	refresh_done=1
}

# ---- Debian packages -------------------------------------------------------------------------

declare -A version_of
read_versions() {
	local name state version
	version_of=()
	while read -r name state version; do
		[ "$state" != ii ] || version_of[${name%%:*}]=$version
	done < <(all_packages | xargs dpkg-query -W -f '${Package} ${db:Status-Abbrev} ${Version}\n' 2>/dev/null)
}

all_packages() {
	local row
	for row in "${PACKAGES[@]}"; do printf '%s\n' "${row##*|}"; done
}

missing_packages() {
	local name
	for name in $(all_packages); do
		[ -n "${version_of[$name]:-}" ] || printf '%s\n' "$name"
	done
}

print_table() {
	local row name group why
	for row in "${PACKAGES[@]}"; do
		IFS='|' read -r group why _ <<<"$row"
		printf '%s: %s\n' "$group" "$why"
		for name in ${row##*|}; do
			printf '  %-22s %s\n' "$name" "${version_of[$name]:-MISSING}"
		done
	done
}

install_packages() {
	local missing
	mapfile -t missing < <(missing_packages)
	[ ${#missing[@]} -gt 0 ] || return 0
	say "installing: ${missing[*]}"
	refresh_lists
	as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get -q install -y --no-install-recommends "${missing[@]}" ||
		die "$EX_FETCH" "apt-get install failed" "mend what apt reports, then run this again"
	read_versions
}

# ---- private apt: another suite of the mirror this machine already uses -------------------------

mirror() {
	local codename uri
	# shellcheck source=/dev/null
	codename=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:?}")
	for _ in 1 2; do
		uri=$(apt-get indextargets --format '$(CODENAME) $(COMPONENT) $(REPO_URI)' |
			awk -v want="$codename main" '$1 " " $2 == want { print $3; exit }')
		[ -z "$uri" ] || break
		refresh_lists >&2
	done
	[ -n "$uri" ] || die 1 "no apt source for $codename main" "add the distribution's own source to /etc/apt"
	printf '%s' "$uri"
}

private_apt() { # suite, apt-get|apt-cache, arguments...
	local dir=$CACHE/apt/$1 tool=$2
	shift 2
	"$tool" -q -o Dir::Etc::SourceList="$dir/sources.list" -o Dir::Etc::SourceParts=- \
		-o Dir::State::Lists="$dir/lists" -o Dir::Cache="$dir/cache" -o APT::Sandbox::User= "$@"
}

private_suite() { # suite, deb|deb-src
	local dir=$CACHE/apt/$1 uri
	uri=$(mirror)
	mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial"
	printf '%s [signed-by=%s] %s %s main\n' "$2" "$KEYRING" "$uri" "$1" >"$dir/sources.list"
	private_apt "$1" apt-get -o APT::Update::Error-Mode=any update ||
		die "$EX_FETCH" "cannot read suite $1 of $uri" "check the network, then run this again"
}

# ---- rdma-core sources -----------------------------------------------------------------------

have_rdma_core() { [ -f "$BUILD/rdma-core-src/libibverbs/driver.h" ]; }

fetch_rdma_core() {
	mkdir -p "$CACHE"
	if [ -n "${RDMA_CORE_SRC:-}" ]; then
		[ -f "$RDMA_CORE_SRC/libibverbs/driver.h" ] ||
			die 1 "RDMA_CORE_SRC=$RDMA_CORE_SRC holds no libibverbs/driver.h"
		rm -rf "$BUILD/rdma-core-src"
		ln -s "$(realpath "$RDMA_CORE_SRC")" "$BUILD/rdma-core-src"
	fi
	! have_rdma_core || return 0
	local tar=$CACHE/rdma-core_${RDMA_CORE_VERSION%-*}.orig.tar.gz
	if ! sum_ok "$tar"; then
		rm -f "$tar"
		private_suite $RDMA_CORE_SUITE deb-src
		(cd "$CACHE" && private_apt $RDMA_CORE_SUITE apt-get source --download-only --tar-only \
			"rdma-core=$RDMA_CORE_VERSION") ||
			die "$EX_FETCH" "cannot fetch the source of rdma-core $RDMA_CORE_VERSION" \
				"check the network, or unpack that release yourself and set RDMA_CORE_SRC=DIR"
		sum_ok "$tar" || die 1 "$tar has another SHA-256 than the pinned one" "do not use it; report this"
	fi
	rm -rf "$BUILD/rdma-core-src.new" "$BUILD/rdma-core-src"
	mkdir -p "$BUILD/rdma-core-src.new"
	tar -xzf "$tar" -C "$BUILD/rdma-core-src.new" --strip-components=1
	mv "$BUILD/rdma-core-src.new" "$BUILD/rdma-core-src"
}

sum_ok() {
	[ -f "$1" ] && printf '%s  %s\n' "$RDMA_CORE_SHA256" "$1" | sha256sum --check --status
}

# ---- kernels: build/kernel/VERSION/{release,headers,boot,lib} -----------------------------------
# The image is only unpacked, never installed; it must be the very version of the headers, because
# modules carry symbol versions.

installed_release() {
	local dir
	dir=$(find /usr/src -maxdepth 1 -name 'linux-headers-[0-9]*-amd64' ! -name '*cloud*' ! -name '*rt-*' |
		sort -V | tail -n 1)
	[ -n "$dir" ] || die 1 "no /usr/src/linux-headers-*-amd64" "install linux-headers-amd64"
	printf '%s' "${dir#*linux-headers-}"
}

kernel_release_of() { cat "$BUILD/kernel/$1/release" 2>/dev/null || printf 'none'; }

have_kernel() {
	local release
	release=$(kernel_release_of "$1")
	[ -f "$BUILD/kernel/$1/boot/vmlinuz-$release" ] &&
		[ -f "$BUILD/kernel/$1/lib/modules/$release/modules.dep" ] &&
		[ -f "$BUILD/kernel/$1/headers/Makefile" ] || return 1
	[ "$1" != 6.1 ] || [ "$release" = "$(installed_release)" ]
}

unpack_kernel() { # version, release, headers directory, deb...
	local new=$BUILD/kernel/$1.new version=$1 release=$2 headers=$3 deb
	shift 3
	rm -rf "${new:?}"
	mkdir -p "$new"
	for deb in "$@"; do dpkg-deb -x "$deb" "$new"; done
	rm -rf "${new:?}/usr/share" "$new/boot/System.map-$release"
	depmod -b "$new" "$release"
	if [ -d "$new/usr/src/linux-headers-$release" ]; then
		# The packages name each other by absolute path; and with vmlinux there, kbuild would want pahole for BTF.
		sed -i "s|/usr/src/|$BUILD/kernel/$version/usr/src/|g" "$new/usr/src/linux-headers-$release/Makefile"
		rm -f "$new/usr/src/linux-headers-$release/vmlinux"
	fi
	rm -rf "${BUILD:?}/kernel/$version"
	printf '%s\n' "$release" >"$new/release"
	ln -sfn "$headers" "$new/headers"
	mv "$new" "$BUILD/kernel/$version"
}

find_deb() { # directory, package
	find "$1" -maxdepth 1 -name "$2_*.deb" 2>/dev/null | sort -V | tail -n 1
}

download_deb() { # directory, package, download command...
	local dir=$1 package=$2 new=$1/partial
	shift 2
	[ -z "$(find_deb "$dir" "$package")" ] || return 0
	rm -rf "$new" # apt checks the sums against the signed lists, but leaves a broken-off file behind
	mkdir -p "$new"
	(cd "$new" && "$@" -o APT::Sandbox::User= download "$package") && mv "$new"/*.deb "$dir/"
}

fetch_kernel_61() {
	! have_kernel 6.1 || return 0
	local release package debs=$CACHE/debs
	release=$(installed_release)
	package=linux-image-$release
	download_deb "$debs" "$package" apt-get -q || {
		refresh_lists
		download_deb "$debs" "$package" apt-get -q
	} || die "$EX_FETCH" "cannot fetch $package, which must match the installed headers" \
		"if the archive has moved on: apt-get update && apt-get install linux-headers-amd64, then run this again"
	unpack_kernel 6.1 "$release" "/usr/src/linux-headers-$release" "$(find_deb "$debs" "$package")"
}

# The newest 6.12 of bookworm-backports, with its headers unpacked beside the image.
fetch_kernel_612() {
	! have_kernel 6.12 || return 0
	local suite=bookworm-backports debs=$CACHE/debs-6.12 release common name
	local parts=()
	private_suite "$suite" deb
	release=$(private_apt "$suite" apt-cache pkgnames linux-image-6.12. |
		sed -n 's/^linux-image-\(6\.12\.[0-9]*+deb12-amd64\)$/\1/p' | sort -V | tail -n 1)
	[ -n "$release" ] || die "$EX_FETCH" "$suite has no linux-image-6.12 for amd64" "try again later"
	common=${release%-amd64}
	for name in "linux-image-$release" "linux-headers-$release" "linux-headers-$common-common" "linux-kbuild-$common"; do
		download_deb "$debs" "$name" private_apt "$suite" apt-get ||
			die "$EX_FETCH" "cannot fetch $name" "check the network, then run this again"
		parts+=("$(find_deb "$debs" "$name")")
	done
	unpack_kernel 6.12 "$release" "$BUILD/kernel/6.12/usr/src/linux-headers-$release" "${parts[@]}"
}

# ---- what is asked for ---------------------------------------------------------------------------

report_downloads() {
	local lacking=0 version
	if have_rdma_core; then
		printf '  %-22s %s\n' "rdma-core sources" "$(realpath --relative-to="$TOP" "$BUILD/rdma-core-src")"
	else
		printf '  %-22s MISSING\n' "rdma-core sources"
		lacking=1
	fi
	for version in "${kernels[@]}"; do
		if have_kernel "$version"; then
			printf '  %-22s %s\n' "guest kernel $version" "$(kernel_release_of "$version")"
		else
			printf '  %-22s MISSING\n' "guest kernel $version"
			lacking=1
		fi
	done
	return $lacking
}

mode=all
kernels=(6.1)
while [ $# -gt 0 ]; do
	case $1 in
	--check) mode=check ;;
	--fetch-only) mode=fetch ;;
	--kernel)
		case ${2:-} in
		6.1) ;;
		6.12) kernels+=(6.12) ;;
		*) die 1 "--kernel knows 6.1 and 6.12" ;;
		esac
		shift
		;;
	-h | --help) usage && exit 0 ;;
	*) usage >&2 && exit 1 ;;
	esac
	shift
done
[ "$(dpkg --print-architecture 2>/dev/null)" = amd64 ] || die 1 "this needs Debian on amd64"

read_versions
if [ $mode = all ]; then
	install_packages
fi
if [ $mode != check ]; then
	fetch_rdma_core
	fetch_kernel_61
	case " ${kernels[*]} " in *' 6.12 '*) fetch_kernel_612 ;; esac
fi

print_table
printf 'downloads: in build/, not committed\n'
status=0
report_downloads || status=1
[ -z "$(missing_packages)" ] || status=1
[ $status -eq 0 ] || say "something is missing; the cure is: tools/setup.sh"
exit $status

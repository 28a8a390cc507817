#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A new Debian 12 in a folder: debootstrap, clone, the README's own lines, then check-fast. Needs root and the package mirror of this
# machine. What was installed here by hand does not exist there.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
work=${ORDMA_FRESH_DIR:-$root/build/fresh}
tree=$work/root
[ "$(id -u)" -eq 0 ] || { echo "check-fresh needs root (debootstrap, chroot)"; exit 77; }
# The mirror is whatever this machine's apt already uses for its own suite.
mirror=$(apt-get indextargets --format '$(SITE) $(CODENAME)' 'Created-By: Packages' | awk '$2 == "bookworm" {print $1; exit}')
[ -n "$mirror" ] || { echo "no bookworm mirror in this machine's apt sources"; exit 75; }

cleanup() {
	for m in dev/shm dev proc sys; do umount -l "$tree/$m" 2>/dev/null || true; done
}
trap cleanup EXIT
rm -rf --one-file-system "$tree"
mkdir -p "$work"
debootstrap --variant=minbase bookworm "$tree" "$mirror" >"$work/debootstrap.log" || { tail -5 "$work/debootstrap.log"; exit 75; }
# The new system reaches packages the way this one does.
cp -a /etc/apt/sources.list* /etc/apt/apt.conf.d /etc/apt/trusted.gpg.d "$tree/etc/apt/" 2>/dev/null || true
[ -d /usr/share/keyrings ] && cp -a /usr/share/keyrings/. "$tree/usr/share/keyrings/"
cp /etc/resolv.conf /etc/hosts "$tree/etc/" 2>/dev/null || true
mount -t proc proc "$tree/proc"
mount --rbind /sys "$tree/sys"
mount --make-rslave "$tree/sys"
mount --rbind /dev "$tree/dev"
mount --make-rslave "$tree/dev"
git clone -q "$root" "$tree/root/ordma"
# The lines between the markers in README.md, as a newcomer types them.
sed -n '/<!-- fresh: begin -->/,/<!-- fresh: end -->/p' "$root/README.md" | sed -n 's/^    //p' >"$work/readme-lines"
[ -s "$work/readme-lines" ] || { echo "README.md has no marked lines"; exit 1; }
{
	echo 'set -eux; export DEBIAN_FRONTEND=noninteractive; cd /root'
	grep -v 'git clone' "$work/readme-lines"
	echo 'make check-fast'
} >"$tree/root/fresh.sh"
chroot "$tree" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin bash /root/fresh.sh

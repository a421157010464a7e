#!/bin/sh
# Installs sortie and sortie-exec from a release, after its checksum was verified.
#
#   sh install.sh                    the newest version, into ~/.local/bin
#   SORTIE_VERSION=0.1.0 sh install.sh
#   SORTIE_BIN_DIR=/usr/local/bin sh install.sh
#
# SORTIE_RELEASES is the address of the releases (https), or a folder with their files.
set -eu

fail() {
	echo "install.sh: $*" >&2
	exit 1
}

main() {
	releases=${SORTIE_RELEASES:-https://github.com/sortie-dev/sortie/releases}
	target=${SORTIE_BIN_DIR:-$HOME/.local/bin}
	case $(uname -s) in
	Linux) system=linux ;;
	Darwin) system=darwin ;;
	*) fail "no release for $(uname -s)" ;;
	esac
	case $(uname -m) in
	x86_64 | amd64) processor=amd64 ;;
	aarch64 | arm64) processor=arm64 ;;
	*) fail "no release for $(uname -m)" ;;
	esac
	tmp=$(mktemp -d)
	trap 'rm -rf "$tmp"' EXIT
	trap 'exit 1' HUP INT TERM
	fetch checksums.txt
	if [ -n "${SORTIE_VERSION:-}" ]; then
		archive=sortie_${SORTIE_VERSION#v}_${system}_$processor.tar.gz
	else
		archive=$(sed -n "s/^[0-9a-f]*  \\(sortie_.*_${system}_$processor\\.tar\\.gz\\)\$/\\1/p" "$tmp/checksums.txt" | head -n 1)
		[ -n "$archive" ] || fail "the release has no archive for $system/$processor"
	fi
	want=$(sed -n "s/^\\([0-9a-f]*\\)  $archive\$/\\1/p" "$tmp/checksums.txt")
	[ -n "$want" ] || fail "checksums.txt has no line for $archive"
	fetch "$archive"
	[ "$(checksum "$tmp/$archive")" = "$want" ] || fail "the checksum of $archive is wrong"
	tar -xzf "$tmp/$archive" -C "$tmp"
	mkdir -p "$target"
	for name in sortie sortie-exec; do
		cp "$tmp/${archive%.tar.gz}/$name" "$target/.$name.new"
		chmod 755 "$target/.$name.new"
		mv -f "$target/.$name.new" "$target/$name"
	done
	echo "Installed sortie and sortie-exec in $target."
	case ":$PATH:" in
	*":$target:"*) ;;
	*) echo "$target is not in PATH." ;;
	esac
}

# fetch FILE stores a file of the release in $tmp.
fetch() {
	if [ -d "$releases" ]; then
		cp "$releases/$1" "$tmp/$1" || fail "no $1 in $releases"
		return
	fi
	case $releases in
	https://*) ;;
	*) fail "SORTIE_RELEASES=$releases: want an address that begins with https://, or a folder" ;;
	esac
	place=latest/download
	[ -z "${SORTIE_VERSION:-}" ] || place=download/v${SORTIE_VERSION#v}
	if command -v curl >/dev/null; then
		curl -fsSL --proto '=https' -o "$tmp/$1" "$releases/$place/$1" || fail "cannot fetch $1"
	elif command -v wget >/dev/null; then
		wget -q -O "$tmp/$1" "$releases/$place/$1" || fail "cannot fetch $1"
	else
		fail "needs curl or wget"
	fi
}

checksum() {
	if command -v sha256sum >/dev/null; then
		sha256sum "$1" | cut -d ' ' -f 1
	elif command -v shasum >/dev/null; then
		shasum -a 256 "$1" | cut -d ' ' -f 1
	else
		fail "needs sha256sum or shasum: nothing is installed without a checksum"
	fi
}

main "$@"

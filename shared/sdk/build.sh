#!/usr/bin/env bash
# Builds the archive of an SDK as its users install it. "make sdk LANG=..." calls it.
#
#   build.sh go|python|typescript|rust [FOLDER]
#
# FOLDER is out/sdk of the repository by default.
set -euo pipefail
unset LANG # of make
export LC_ALL=C.UTF-8
cd "$(dirname "$0")"
out=${2:-../../out/sdk}
mkdir -p "$out"
out=$(cd "$out" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

case ${1:-} in
go)
	go build ./go/...
	echo "The Go SDK has no archive: go get github.com/sortie-dev/sortie@v$(sed -n 's/^const Version = "\(.*\)"/\1/p' go/client/config.go)"
	;;
python)
	python3 -m venv "$tmp/venv"
	"$tmp/venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes -r python/requirements.txt
	"$tmp/venv/bin/python" -m build --no-isolation --outdir "$out" python >"$tmp/log" 2>&1 || { cat "$tmp/log"; exit 1; }
	;;
typescript)
	cp -R typescript/{.npmrc,LICENSE,README.md,package.json,package-lock.json,tsconfig.json,src,scripts} "$tmp/"
	(cd "$tmp" && npm ci --ignore-scripts --loglevel=error && node scripts/build.mjs && npm pack --loglevel=error --pack-destination "$out") >/dev/null
	;;
rust)
	CARGO_TARGET_DIR=$tmp cargo package --quiet --locked --allow-dirty --no-verify --manifest-path rust/Cargo.toml
	cp "$tmp"/package/*.crate "$out/"
	;;
*)
	echo "build.sh: unknown SDK \"${1:-}\", want LANG=go, python, typescript or rust" >&2
	exit 2
	;;
esac
[ "$1" = go ] || ls "$out"

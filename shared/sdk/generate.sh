#!/usr/bin/env bash
# Writes the files of the SDKs that are made from the OpenAPI document. It needs Go, Node.js, Python
# 3.10 or newer and cargo, and the network for the tools.
#
#   generate.sh [go|python|typescript|rust]...
set -euo pipefail
cd "$(dirname "$0")"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

[ $# -gt 0 ] || set -- go python typescript rust
for language; do
	case $language in
	go)
		go test ./go/generate -run Fresh -count 1 -args -rewrite
		;;
	python)
		python3 -m venv "$tmp/venv"
		"$tmp/venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes -r python/requirements.txt
		"$tmp/venv/bin/python" python/tools/generate.py
		;;
	typescript)
		(cd typescript && npm ci --ignore-scripts --loglevel=error >/dev/null && node scripts/generate.mjs)
		;;
	rust)
		(cd rust && SORTIE_REWRITE=1 cargo test --quiet --locked --all-features --test models generated_files_are_fresh)
		;;
	*)
		echo "generate.sh: unknown SDK \"$language\", want go, python, typescript or rust" >&2
		exit 2
		;;
	esac
done

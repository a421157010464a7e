#!/usr/bin/env bash
# Runs commands of the README against a system of its own, and prints them as a terminal shows
# them. "make screenshots" draws that. bin has sortie and sortie-exec.
set -euo pipefail
PATH=$PWD/bin:$PATH
work=$(mktemp -d)
sed -n '/^id: nightly-report$/,/^END$/{/^END$/!p;}' README.md >"$work/nightly.yaml"
cd "$work"
sortie dev --addr 127.0.0.1:0 --json >ready 2>log &
server=$!
trap 'kill "$server"; wait "$server" || true; rm -rf "$work"' EXIT
until grep -q '"url"' ready; do sleep 0.1; done
SORTIE_URL=$(sed -n 's/.*"url":"\([^"]*\)".*/\1/p' ready)
export SORTIE_URL
# The live line of standard error is not drawn: it replaces itself.
shown() {
	printf '\033[32m$\033[0m %s\n' "$1"
	eval "$1" 2> >(cat) || true
	wait "$!"
	echo
}
sortie jobs apply -f nightly.yaml >/dev/null
shown "sortie jobs run nightly-report --wait"
shown "sortie run exec:sh -- -c 'echo working; exit 3'"
shown "sortie runs"
shown "sortie jobs history nightly-report"

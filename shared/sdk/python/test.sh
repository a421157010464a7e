#!/usr/bin/env bash
# Tests the Python SDK from scratch: builds the archive, installs it into a new
# environment, and checks types, style, unit tests, the conformance kit and a suite
# against a local system.
#
#   ./test.sh          everything; needs sortie and sortie-exec
#   ./test.sh quick    without the kit and the local system
#
# PYTHON          the interpreter (default: python3), 3.10 or newer
# SORTIE_BIN_DIR  the folder of sortie and sortie-exec (default: bin of the repository)
set -euo pipefail

cd "$(dirname "$0")"
mode=${1:-all}
case $mode in all | quick) ;; *)
	echo "usage: $0 [quick]" >&2
	exit 1
	;;
esac
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset PYTHONPATH
export PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1

step() { printf '\n== %s\n' "$*"; }
fail() {
	echo "failed: $*" >&2
	exit 1
}

step "environment: $("$python" --version)"
"$python" -m venv "$work/venv"
bin=$work/venv/bin
"$bin/pip" install --quiet --require-hashes -r requirements.txt

step "build the archive"
"$bin/python" -m build --no-isolation --outdir "$work/dist" . >"$work/build.txt" 2>&1 || {
	cat "$work/build.txt"
	fail "build"
}
wheel=$(ls "$work"/dist/*.whl)
ls -l "$work"/dist
"$bin/python" -m zipfile -l "$wheel" >"$work/files.txt"
grep -q 'sortie/py.typed' "$work/files.txt" || fail "py.typed is not in the archive"
"$bin/pip" install --quiet --no-deps "$wheel"

step "style"
"$bin/ruff" check --no-cache .
"$bin/ruff" format --no-cache --check .

step "generated files are fresh"
"$bin/python" tools/generate.py --check

step "types, against the installed archive"
mkdir "$work/typed"
cp -r examples tests "$work/typed/"
(cd "$work/typed" && "$bin/mypy" --strict --python-version 3.10 --cache-dir "$work/mypy" \
	-p sortie)
for folder in examples tests/unit tests/live tests/kit; do
	(cd "$work/typed/$folder" && MYPYPATH="$OLDPWD/tools" "$bin/mypy" --strict --cache-dir "$work/mypy" ./*.py)
done

step "a worker needs the standard library alone"
"$python" -m venv "$work/bare"
"$work/bare/bin/pip" install --quiet --no-deps --no-index "$wheel"
"$work/bare/bin/python" -W error -c 'import sortie.worker, sortie.webhooks, sortie.models, sortie.errors, sortie.sse'
if "$work/bare/bin/python" -c 'import sortie.client' 2>"$work/bare.txt"; then
	fail "sortie.client was imported without httpx"
fi
grep -q "sortie\[client\]" "$work/bare.txt" || fail "the error does not name the extra"

run() {
	local folder=$1
	shift
	"$bin/python" -W error -m pytest -q -p no:cacheprovider -c pyproject.toml --rootdir . "$@" "tests/$folder"
}

step "unit tests"
run unit

if [ "$mode" = quick ]; then
	step "passed (quick)"
	exit 0
fi

programs=${SORTIE_BIN_DIR:-../../../bin}
[ -x "$programs/sortie" ] && [ -x "$programs/sortie-exec" ] ||
	fail "no sortie and sortie-exec in $programs: make build sortie-exec, or set SORTIE_BIN_DIR"
programs=$(cd "$programs" && pwd)
export SORTIE_BIN=$programs/sortie SORTIE_EXEC_BIN=$programs/sortie-exec

step "conformance kit"
run kit

step "suite against a local system"
run live

step "passed"

#!/bin/sh
# Tests the Rust SDK as its users get it: packs the crate, unpacks it into a temporary folder,
# and builds and tests it there.
#
#   ./test.sh         everything; needs sortie and sortie-exec ("make build")
#   ./test.sh quick   without the conformance kit and the tests against a server
#
# SORTIE_BIN names the sortie to test with; the default is bin/sortie of the repository.
# CARGO_JOBS is how many crates compile at once; the default is 2. If there is
# rustup, the crate is also built with the oldest supported version, which it installs.
#
# After a change of the OpenAPI document: SORTIE_REWRITE=1 cargo test --all-features --test models
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mode=${1:-all}
case $mode in all | quick) ;; *)
  echo "usage: $0 [quick]" >&2
  exit 1
  ;;
esac
sortie=${SORTIE_BIN:-$here/../../../bin/sortie}
if [ "$mode" = all ] && { [ ! -x "$sortie" ] || [ ! -x "$(dirname "$sortie")/sortie-exec" ]; }; then
  echo "test.sh: no sortie and sortie-exec at $sortie: run make build, or set SORTIE_BIN" >&2
  exit 1
fi
jobs=${CARGO_JOBS:-2}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
step() { echo "== $*"; }
# What was compiled stays in the ignored folder target, for the next run.
export CARGO_TARGET_DIR="$here/target" CARGO_TERM_COLOR=never

step "environment: $(cargo --version)"
cd "$here"
step "pack"
cargo package --locked --allow-dirty --no-verify --quiet
archive=$(ls "$CARGO_TARGET_DIR"/package/sortie-worker-*.crate)
# With the time of now: all files of an archive have the same old one, by which cargo would take
# what it compiled before for fresh.
tar -xzmf "$archive" -C "$tmp"
cd "$tmp"/sortie-worker-*
export SORTIE_OPENAPI="$here/../../wire/contract/openapi.yaml" SORTIE_TESTDATA="$here/../testdata"

step "style"
cargo fmt --check
step "lints, also for each feature alone"
for features in "" client webhooks; do
  cargo clippy --locked -q -j "$jobs" --lib --features "$features" -- -D warnings
done
cargo clippy --locked -q -j "$jobs" --all-targets --all-features -- -D warnings
step "documents"
RUSTDOCFLAGS="-D warnings" cargo doc --locked -q -j "$jobs" --no-deps --all-features

oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
if command -v rustup >/dev/null; then
  step "the oldest supported version, $oldest"
  rustup toolchain list | grep -q "^$oldest" || rustup toolchain install "$oldest" --profile minimal --no-self-update
  cargo "+$oldest" build --locked -q -j "$jobs" --lib --examples --all-features
else
  step "not built with the oldest supported version $oldest: no rustup"
fi

step "unit and documentation tests"
cargo test --locked -j "$jobs" --all-features
if [ "$mode" = quick ]; then
  step "ok (quick)"
  exit 0
fi

examples=$CARGO_TARGET_DIR/debug/examples
check() { "$sortie" worker check --timeout 5s --abort 10s --grace 10s "$@"; }
step "conformance kit: the example worker"
check -- "$examples/worker_csv"
step "conformance kit: a worker that never yields"
check -- "$examples/worker_busy"
step "conformance kit: a worker that never yields and never asks"
check --only cancel,expired -- "$examples/worker_busy" 60 deaf
step "conformance kit: the same under sortie-exec"
check --only work,cancel -- "$(dirname "$sortie")/sortie-exec" sleep 4

step "tests against a server"
SORTIE_BIN=$sortie SORTIE_EXAMPLES=$examples \
  cargo test --locked -j "$jobs" --all-features --test live -- --ignored --nocapture
step "ok"

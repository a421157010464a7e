#!/bin/sh
# Builds the package from scratch in a temporary folder and tests the packed archive.
#
#   ./test.sh         everything; needs sortie and sortie-exec ("make build sortie-exec")
#   ./test.sh quick   without the conformance kit and the tests against a server
#
# SORTIE_BIN names the sortie to test with; the default is bin/sortie of the repository.
# If no deno is in the PATH, npm installs the version of test/deno. CHROMIUM
# is the browser; the default is the first of its usual names in the PATH.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mode=${1:-all}
sortie=${SORTIE_BIN:-$here/../../../bin/sortie}
if [ "$mode" != quick ] && [ ! -x "$sortie" ]; then
  echo "test.sh: no program at $sortie: run make build sortie-exec, or set SORTIE_BIN" >&2
  exit 1
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
step() { echo "== $*"; }

step "copy the sources"
work=$tmp/shared/sdk/typescript
mkdir -p "$work" "$tmp/shared/wire/contract" "$tmp/events/schema" "$tmp/user"
cp "$here/../../wire/contract/openapi.yaml" "$tmp/shared/wire/contract/"
cp "$here/../../../events/schema/orch.event.v1.json" "$tmp/events/schema/"
for name in .npmrc LICENSE package.json package-lock.json tsconfig.json README.md src scripts testdata; do cp -R "$here/$name" "$work/"; done

step "install the tools that package-lock.json pins"
cd "$work"
npm ci --ignore-scripts --loglevel=error
tools=$work/node_modules/.bin

step "compare the generated code with the OpenAPI document"
node scripts/generate.mjs --check

step "compile and pack"
node scripts/build.mjs
npm pack --loglevel=error --pack-destination "$tmp" >/dev/null
archive=$(ls "$tmp"/sortie-sdk-*.tgz)

step "install the archive"
cd "$tmp/user"
printf '{"private": true, "type": "module"}\n' >package.json
npm install --offline --ignore-scripts --loglevel=error "$archive" >/dev/null
mkdir -p testdata
cp -R "$here"/test/. "$here/examples" .
cp "$here/README.md" .
cp "$here"/testdata/* "$here"/../testdata/sse.json testdata/

step "check the archive: publint, are the types wrong"
"$tools/publint" run --strict --pack false node_modules/@sortie/sdk
"$tools/attw" --profile node16 "$archive"

step "compile programs that use the archive"
mv testdata/examples.ts types/
"$tools/tsc" -p types/bundler.json
"$tools/tsc" -p types/node16.json

step "unit tests"
node --test operations.test.mjs client.test.mjs sse.test.mjs webhooks.test.mjs readme.test.mjs worker.test.mjs patience.test.mjs

step "client and webhooks in Deno"
deno=$(command -v deno) || {
  (cd deno && npm ci --ignore-scripts --loglevel=error >/dev/null)
  deno=$tmp/user/deno/node_modules/.bin/deno
}
"$deno" test --quiet --allow-all --no-check operations.test.mjs client.test.mjs sse.test.mjs webhooks.test.mjs

step "client and webhooks in a browser, if there is Chromium"
"$tools/esbuild" page.mjs --bundle --platform=browser --format=esm --outfile=bundle/page.mjs --log-level=error
node --test browser.test.mjs

if [ "$mode" = quick ]; then
  echo "== ok (quick)"
  exit 0
fi

step "conformance kit: the example worker"
"$sortie" worker check --timeout 5s --abort 10s -- node "$tmp/user/examples/worker.mjs"
step "conformance kit: the example worker in a bundle"
"$tools/esbuild" examples/worker.mjs --bundle --platform=node --format=esm --outfile=bundle/worker.mjs --log-level=error
"$sortie" worker check --only work,cancel --timeout 5s --abort 10s -- node "$tmp/user/bundle/worker.mjs"
step "conformance kit: a worker that never yields"
"$sortie" worker check --timeout 5s --abort 10s -- node "$tmp/user/busy-worker.mjs"

step "tests against a server"
SORTIE_BIN=$sortie node --test live.test.mjs
echo "== ok"

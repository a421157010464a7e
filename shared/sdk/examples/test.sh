#!/usr/bin/env bash
# Runs each example against a system of its own ("sortie dev" with the engine mock), with the SDKs
# as their users install them.
#
# It needs sortie and sortie-exec ("make build sortie-exec"), Go, Node.js, Python 3.10 or newer,
# Ruby, curl and tar. SORTIE_BIN_DIR is the folder of sortie and sortie-exec; the default is bin
# of the repository.
set -euo pipefail
cd "$(dirname "$0")"
here=$PWD
root=$(cd ../../.. && pwd)
bin=${SORTIE_BIN_DIR:-$root/bin}

step() { printf '== %s\n' "$*"; }
fail() {
	printf 'failed: %s\n' "$*" >&2
	[ ! -f "$tmp/server.log" ] || tail -5 "$tmp/server.log" >&2
	exit 1
}
tmp=$(mktemp -d)
processes=()
end() {
	for process in "${processes[@]}"; do kill "$process" 2>/dev/null || true; done
	wait
	rm -rf "$tmp"
}
trap end EXIT
trap 'exit 1' HUP INT TERM

for program in "$bin/sortie" "$bin/sortie-exec" go node npm python3 ruby curl tar; do
	command -v "$program" >/dev/null || fail "no $program: install it, or make build sortie-exec"
done

step "install the SDK for Python"
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes -r ../python/requirements.txt
"$tmp/venv/bin/python" -m build --no-isolation --wheel --outdir "$tmp" ../python >"$tmp/build.log" 2>&1 || fail "$(cat "$tmp/build.log")"
"$tmp/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps "$tmp"/sortie-*.whl
export PATH=$tmp/venv/bin:$bin:$PATH

step "install the SDK for TypeScript"
../build.sh typescript "$tmp" >/dev/null
cp -R "$here" "$tmp/examples"
cp ../typescript/examples/webhook.mjs ../python/examples/webhook_receiver.py "$tmp/examples/"
cd "$tmp/examples"
npm ci --ignore-scripts --loglevel=error >/dev/null
npm install --no-save --ignore-scripts --loglevel=error "$tmp"/sortie-sdk-*.tgz >/dev/null

step "check and compile the programs"
mypy --strict --cache-dir "$tmp/mypy" nightly_report.py
mypy --strict --cache-dir "$tmp/mypy" fan_out.py
mypy --strict --cache-dir "$tmp/mypy" from-celery/after.py
mypy --strict --cache-dir "$tmp/mypy" from-celery/shop.py
ruff check --quiet --no-cache --config "$here/../python/pyproject.toml" ./*.py from-celery
python3 -m py_compile from-celery/before.py
ruby -c from-sidekiq/before.rb from-sidekiq/after.rb >/dev/null
npm run --silent build
(cd "$root" && CGO_ENABLED=0 go build -o "$tmp/receiver" ./shared/domain/webhook/examples/go)

step "start the system and a site"
node -e '
const { PNG } = require("pngjs");
const { writeFileSync } = require("fs");
for (const [name, color] of [["red", [255, 0, 0, 255]], ["blue", [0, 0, 255, 255]]]) {
  const image = new PNG({ width: 200, height: 100 });
  for (let at = 0; at < image.data.length; at++) image.data[at] = color[at % 4];
  writeFileSync(`testdata/${name}.png`, PNG.sync.write(image));
}'
python3 -u -m http.server --bind 127.0.0.1 --directory testdata 0 >"$tmp/site.log" 2>&1 &
processes+=($!)
SORTIE_HOOK_ALLOW=127.0.0.1 sortie dev --addr 127.0.0.1:0 --data "$tmp/data" --json --engine mock \
	--image "report=python3 nightly_report.py" \
	--image "thumbnails=node dist/thumbnails.mjs" \
	--image "crawler=sortie-exec --output pages.tsv sh crawler.sh" \
	--image "backup=sh from-cron/backup.sh" \
	--image "remind=python3 from-celery/after.py" \
	--image "contacts=ruby from-sidekiq/after.rb" \
	--image "links=sh from-github-actions/links.sh" >"$tmp/ready.json" 2>"$tmp/server.log" &
server=$!
processes+=("$server")
until_seen() { # until_seen PATTERN FILE: at most two minutes
	for _ in $(seq 600); do
		if grep -q -- "$1" "$2" 2>/dev/null; then return; fi
		sleep 0.2
	done
	fail "no $1 in $2: $(cat "$2")"
}
until_seen '"url"' "$tmp/ready.json"
until_seen ' port ' "$tmp/site.log"
SORTIE_URL=$(sed -n 's/.*"url":"\([^"]*\)".*/\1/p' "$tmp/ready.json")
SORTIE_TOKEN=$(cat "$tmp/data/token")
export SORTIE_URL SORTIE_TOKEN
site=http://127.0.0.1:$(sed -n 's/.* port \([0-9]*\) .*/\1/p' "$tmp/site.log")
# The files name port 8000; each has a copy with the port of this site.
for file in *.yaml */after.yaml from-celery/after.py; do
	sed "s|http://127.0.0.1:8000|$site|g" "$file" >"$tmp/copy" && cp "$tmp/copy" "$file"
done

same() { # same WHAT GOT WANT
	[ "$2" = "$3" ] || fail "$(printf '%s: got\n%s\nwant\n%s' "$1" "$2" "$3")"
}
# job FILE [PARAMETER...] stores a job, runs it, waits for its end and prints its id.
job() {
	local file=$1 parameters=()
	shift
	for parameter in "$@"; do parameters+=(--param "$parameter"); done
	sortie jobs apply -f "$file" >&2
	local run
	run=$(sortie jobs run "$(sed -n 's/^id: //p' "$file")" ${parameters[@]+"${parameters[@]}"})
	sortie status "$run" --wait >"$tmp/status.txt" || fail "$(cat "$tmp/status.txt"; sortie logs "$run")"
	echo "$run"
}

step "a nightly report in Python"
run=$(job nightly-report.yaml)
same report "$(sortie download "$run" -o -)" "country,total
DE,20.00
NO,11.25"

step "thumbnails in TypeScript"
run=$(job thumbnails.yaml)
sortie download "$run" -o "$tmp/sheet.png"
same thumbnails "$(node -e '
const { PNG } = require("pngjs");
const { width, height, data } = PNG.sync.read(require("fs").readFileSync(process.argv[1]));
console.log(width, height, [...data.subarray(0, 4)], [...data.subarray(4 * (width - 1), 4 * width)]);' "$tmp/sheet.png")" \
	"128 64 [ 255, 0, 0, 255 ] [ 0, 0, 255, 255 ]"

step "a crawler as shell script"
run=$(job crawler.yaml)
same pages "$(sortie download "$run" -o -)" "$(printf '200\t%s\n' "$site/index.html" "$site/a.html"; printf '404\t%s\n' "$site/missing.html"; printf '200\t%s\n' "$site/b.html")"
sortie worker check --only work --timeout 5s --abort 10s -- env "START=$site/index.html" "$bin/sortie-exec" --output pages.tsv sh "$PWD/crawler.sh" >"$tmp/kit.txt" || fail "$(cat "$tmp/kit.txt")"

step "a run for each page"
sortie jobs apply -f fan-out.yaml >&2
python3 fan_out.py index.html later.html b.html >"$tmp/sizes.txt" || fail "no sizes"
run=$(sed -n 's/^\(.*\) 2 pages$/\1/p' "$tmp/sizes.txt")
same sizes "$(sed 1d "$tmp/sizes.txt")" "index.html $(wc -c <testdata/index.html | tr -d ' ')
later.html failed
b.html $(wc -c <testdata/b.html | tr -d ' ')"
echo later >testdata/later.html
run=$(sortie retry "$run" --only-failed)
sortie status "$run" --wait >"$tmp/status.txt" || fail "$(cat "$tmp/status.txt")"
same "the page that failed" "$(sortie download "$run" -o - | sed 's/.*"item":"\([^"]*\)".*"result":\([0-9]*\).*/\1 \2/')" "later.html 6"

step "webhook receivers in Python, TypeScript and Go"
# receiver NAME PATH COMMAND...: the program gets a port and the secret, and prints the event.
receiver() {
	local name=$1 path=$2 port webhook
	shift 2
	port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
	sortie webhooks create "http://127.0.0.1:$port$path" --type job.completed --json >"$tmp/webhook.json"
	webhook=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["id"])' "$tmp/webhook.json")
	PORT=$port WEBHOOK_SECRET=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["secret"])' "$tmp/webhook.json") \
		"$@" >"$tmp/$name.log" 2>&1 &
	processes+=($!)
	for _ in $(seq 100); do
		if curl -s -o "$tmp/answer" -w '%{http_code}' -d '{}' "http://127.0.0.1:$port$path" >"$tmp/code"; then break; fi
		sleep 0.2
	done
	same "$name without a signature" "$(cat "$tmp/code")" 401
	sortie webhooks test "$webhook" >"$tmp/delivery.txt" || fail "$name: $(cat "$tmp/delivery.txt" "$tmp/$name.log")"
	until_seen webhook.test "$tmp/$name.log"
	sortie webhooks delete "$webhook"
}
receiver python / python3 -u webhook_receiver.py
receiver typescript / node webhook.mjs
receiver go /sortie "$tmp/receiver"

step "from cron"
run=$(job from-cron/after.yaml "FOLDER=$PWD/testdata")
sortie download "$run" -o "$tmp/site.tar.gz"
same backup "$(tar -tzf "$tmp/site.tar.gz" | grep -c orders.csv)" 1

step "from Celery"
run=$(job from-celery/after.yaml)
same customers "$(sortie download "$run" -o -)" '["Alm", "Berg"]'
same "customers of the shop" "$(python3 from-celery/shop.py)" '["Berg"]'

step "from Sidekiq"
run=$(job from-sidekiq/after.yaml)
same contacts "$(sortie logs "$run")" "Berg: berg@example.org
Alm: alm@example.org"

step "from GitHub Actions"
run=$(job from-github-actions/after.yaml)
same links "$(sortie logs "$run")" "/a.html
/missing.html
https://example.org/"

step "a client of OpenAI with a budget"
sortie budgets set tenant --tokens 400 >/dev/null
node budget.mjs >"$tmp/budget.txt" || fail "$(cat "$tmp/budget.txt")"
cat "$tmp/budget.txt"
grep -q '^answer 1: [0-9]* tokens$' "$tmp/budget.txt" || fail "no answer"
grep -q '^question [0-9]* refused: 429 the budget ' "$tmp/budget.txt" || fail "no refusal"
spent=$(sed -n 's/^spent \([0-9]*\) of 400 tokens$/\1/p' "$tmp/budget.txt")
[ "$spent" -gt 0 ] && [ "$spent" -le 400 ] || fail "got $spent spent tokens, want 1 to 400"

step "passed"

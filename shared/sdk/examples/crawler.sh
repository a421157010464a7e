#!/bin/sh
# Crawls the pages of one site, breadth first, and writes the status and the address of each to
# $SORTIE_OUTPUT. START is the first page, MOST the most pages. It needs curl. sortie-exec runs
# it as a worker: it sends heartbeats, stops the script after a cancel, and stores the file.
set -eu
most=${MOST:-50}
site=$(printf '%s\n' "$START" | sed 's|^\(https*://[^/]*\).*|\1|')
printf '%s\n' "$START" >queue
: >"$SORTIE_OUTPUT"
crawled=0
while [ "$crawled" -lt "$most" ]; do
	address=$(sed -n "$((crawled + 1))p" queue)
	[ -n "$address" ] || break
	: >page
	status=$(curl -sS --proto =http,https --max-time 20 --max-filesize 1000000 -o page -w '%{http_code}' -- "$address") ||
		[ "$crawled" -gt 0 ] || exit 69 # the site does not answer: an attempt later may succeed
	printf '%s\t%s\n' "$status" "$address" >>"$SORTIE_OUTPUT"
	# Links to the same site, each once.
	grep -o 'href="/[^"/#][^"#]*' page | sed "s|^href=\"|$site|" | while read -r link; do
		grep -qxF -- "$link" queue || printf '%s\n' "$link" >>queue
	done
	crawled=$((crawled + 1))
	found=$(($(wc -l <queue)))
	echo "$((100 * crawled / found)) $crawled of $found pages" >&"$SORTIE_PROGRESS_FD"
	sleep 1 # spare the site
done

#!/bin/sh
# Prints the links of a page. The same script serves both.
set -eu
page=$(curl -fsS --max-time 60 -- "$1")
printf '%s\n' "$page" | grep -o 'href="[^"]*"' | sed 's/^href="//; s/"$//' | sort -u

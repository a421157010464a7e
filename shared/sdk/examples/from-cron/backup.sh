#!/bin/sh
# Packs a folder. The same script serves cron and Sortie.
set -eu
tar -czf "${SORTIE_OUTPUT:-/var/backups/site.tar.gz}" -C "${FOLDER:-/srv/site}" .

#!/bin/sh
# Stops the service when the package is removed, and not before an upgrade. The data stay.
set -e
case "${1:-}" in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now sortie.service
	fi
	;;
esac

#!/bin/sh
# Creates the user of the service. It starts only by "systemctl enable --now sortie".
set -e
if command -v systemd-sysusers >/dev/null; then
	systemd-sysusers sortie.conf
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	# A service that does not start must not break the installation of other packages.
	systemctl try-restart sortie.service || echo 'sortie.service did not restart: see journalctl -u sortie' >&2
fi

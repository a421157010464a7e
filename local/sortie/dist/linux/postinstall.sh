#!/bin/sh
# Creates the user of the service. It starts only by "systemctl enable --now sortie".
set -e
if command -v systemd-sysusers >/dev/null; then
	systemd-sysusers sortie.conf
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart sortie.service
fi

#!/bin/sh
# An example program for sortie-exec: it writes an XML file in thirty steps and
# reports its progress. It knows nothing about Sortie except three variables.
#
#   sortie-exec --output steps.xml --content-type application/xml sh steps.sh
set -eu
steps=30
{
	printf '<steps task="%s">\n' "$SORTIE_TASK_ID"
	step=0
	while [ "$step" -lt "$steps" ]; do
		sleep 0.1 # replace this with the real work
		step=$((step + 1))
		printf '  <step n="%d"/>\n' "$step"
		echo "$((100 * step / steps)) step $step of $steps" >&"$SORTIE_PROGRESS_FD"
	done
	printf '</steps>\n'
} >"$SORTIE_OUTPUT"

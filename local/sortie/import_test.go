package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestImportedJobsRun stores the jobs of a file of each program on a server. It runs those that
// are programs of this machine.
func TestImportedJobsRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, url := dev(t, dir, "--addr", "127.0.0.1:0")
	sortie := func(args ...string) ran {
		s := start(t, dir, args...)
		return ran{s.exit(t), s.stdout.String(), s.stderr.String()}
	}
	for program, row := range map[string]struct{ source, applied, output string }{
		"crontab": {"GREETING = 'good morning'\n# Greet\n0 5 * * 1-5 /bin/cat; echo \"$GREETING\" 100\\%%all%of you\n", "created cat, version 1, next firing ", "all\nof you\ngood morning 100%\n"},
		"kubernetes": {
			"{apiVersion: batch/v1, kind: CronJob, metadata: {name: dump}, spec: {schedule: '@daily', concurrencyPolicy: Replace, jobTemplate: {spec: {template: {spec: {containers: [{image: 'postgres:17', args: [pg_dump]}]}}}}}}",
			"created dump, version 1, next firing ", "",
		},
		"nomad":  {"job \"date\" {\n type = \"batch\"\n task \"t\" {\n driver = \"exec\"\n config {\n command = \"echo\"\n args = [\"a b\", \"c\"]\n}\n}\n}\n", "created date, version 1\n", "a b c\n"},
		"github": {"name: Nightly\non: {schedule: [{cron: '0 5 * * *'}]}\nenv: {LEVEL: info}\njobs: {a: {steps: [{name: It's a step, run: 'cd / && x=1'}, {env: {DAY: a'b}, run: 'test \"$PWD\" != / && echo \"$LEVEL ${x:-none} $DAY\"'}, {run: 'false'}, {run: echo no}]}}\n", "created nightly, version 1, next firing ", "info none a'b\n"},
	} {
		write(t, dir, program, row.source)
		if got := sortie("import", program, program, "--out", program+".jobs"); got.code != 0 {
			t.Errorf("%s: got %+v, want job files", program, got)
		}
		applied := sortie("jobs", "apply", "-f", program+".jobs", "--url", url)
		if applied.code != 0 || !strings.HasPrefix(applied.stdout, row.applied) {
			t.Errorf("%s: got %+v, want %s", program, applied, row.applied)
		}
		if row.output == "" {
			continue
		}
		_, id, _ := strings.Cut(strings.SplitN(row.applied, ",", 2)[0], " ")
		got := runs(t, dir, url, "-f", filepath.Join(program+".jobs", id+".yaml"))
		if got.stdout != row.output || (got.code == 0) != (program != "github") {
			t.Errorf("%s: got %+v, want %q", program, got, row.output)
		}
	}
}

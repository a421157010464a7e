package command_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// imported has a file of each program.
var imported = map[string]string{
	"crontab": "# Nightly report\n30 2 * * 1-5 /opt/report.sh --all\n*/5 * * * * /opt/poll.sh%input\n",
	"kubernetes": `apiVersion: batch/v1
kind: CronJob
metadata: {name: backup, namespace: shop}
spec:
  schedule: "0 2 * * *"
  concurrencyPolicy: Forbid
  startingDeadlineSeconds: 600
  jobTemplate:
    spec:
      activeDeadlineSeconds: 3600
      template: {spec: {restartPolicy: Never, containers: [{name: dump, image: "postgres:17", args: [pg_dump], resources: {limits: {cpu: 1, memory: 300Mi}}}]}}
---
apiVersion: v1
kind: Secret
metadata: {name: db}
`,
	"nomad": `job "clean" {
  type = "batch"
  periodic {
    cron = "@daily"
  }
  group "g" {
    task "t" {
      driver = "raw_exec"
      config {
        command = "clean"
      }
    }
  }
}
`,
	"github": `name: Nightly
on: {schedule: [{cron: "0 5 * * *"}, {cron: "0 6 * * *"}]}
concurrency: nightly
jobs:
  test: {runs-on: ubuntu-latest, timeout-minutes: 5, steps: [{uses: actions/checkout@v4}, {name: Test, run: make test}]}
`,
}

func TestImportedFilesAreValid(t *testing.T) {
	t.Parallel()
	env := map[string]string{"TZ": "Europe/Berlin"}
	for program, want := range map[string]string{"crontab": "report poll", "kubernetes": "backup", "nomad": "clean", "github": "nightly"} {
		got := sortie(t, env, imported[program], "import", program, "-")
		if got.code != 0 || !strings.HasPrefix(got.stdout, "# Imported from -, line ") || strings.Contains(got.stderr, "-:13: Secret db is no job") != (program == "kubernetes") {
			t.Errorf("%s: got %+v, want job files", program, got)
		}
		if zone := "timeZone: Europe/Berlin"; strings.Contains(got.stdout, zone) != (program == "crontab") {
			t.Errorf("%s: got %s, want the zone of the machine for a crontab alone", program, got.stdout)
		}
		folder := filepath.Join(t.TempDir(), "new", "jobs")
		files := sortie(t, env, "", "import", program, written(t, imported[program]), "--out", folder)
		all, each := written(t, got.stdout), ""
		valid := sortie(t, nil, "", "jobs", "validate", all)
		for id := range strings.FieldsSeq(want) {
			if name := filepath.Join(folder, id+".yaml"); !strings.Contains(files.stdout, name+"\n") || sortie(t, nil, "", "jobs", "validate", name).code != 0 {
				t.Errorf("%s: got %+v, want a valid file %s", program, files, name)
			}
			each += "valid " + id + ", " + all + "\n"
		}
		if valid.code != 0 || valid.stdout != each {
			t.Errorf("%s: got %+v, want %s", program, valid, each)
		}
	}
}

func TestImportReplacesNoFile(t *testing.T) {
	t.Parallel()
	folder, other := t.TempDir(), written(t, "secret")
	poll := filepath.Join(folder, "poll.yaml")
	if err := os.Symlink(other, poll); err != nil {
		t.Fatal(err)
	}
	source := written(t, imported["crontab"])
	got := sortie(t, nil, "", "import", "crontab", source, "--out", folder)
	if _, err := os.Stat(filepath.Join(folder, "report.yaml")); got.code != 2 || !strings.Contains(got.stderr, poll+" exists") || err == nil {
		t.Errorf("got %+v, %v, want no file at all", got, err)
	}
	got = sortie(t, nil, "", "import", "crontab", source, "--out", folder, "--force")
	text, err := os.ReadFile(other)
	if got.code != 0 || got.stdout != filepath.Join(folder, "report.yaml")+"\n"+poll+"\n" || string(text) != "secret" {
		t.Errorf("got %+v, %s, %v, want new files, and the target of the link as before", got, text, err)
	}
	if got := sortie(t, nil, "", "import", "crontab", source, "--out", source); got.code != 1 || !strings.Contains(got.stderr, "cannot create the folder") {
		t.Errorf("got %+v, want an error for a folder that is a file", got)
	}
	var result struct {
		Jobs []struct {
			Definition     struct{ ID, Input string }
			Comments, Lost []string
		}
	}
	got = sortie(t, nil, "", "import", "crontab", source, "--json")
	if err := json.Unmarshal([]byte(got.stdout), &result); err != nil || len(result.Jobs) != 2 || result.Jobs[1].Definition.Input != "input\n" || len(result.Jobs[0].Comments) != 2 {
		t.Errorf("got %+v, %v, want two jobs", got, err)
	}
}

func TestImportNamesFileAndLine(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"0 5 * * * a\nnonsense\n": ":2: \"nonsense\": want five fields", "\x00": ":1: binary data", "": ":1: no line with a command",
	} {
		name := written(t, source)
		if got := sortie(t, nil, "", "import", "crontab", name); got.code != 2 || got.stdout != "" || !strings.Contains(got.stderr, name+want) {
			t.Errorf("%q: got %+v, want %q", source, got, want)
		}
	}
	for args, want := range map[string]string{
		"import": "", "import airflow x": "want crontab, github, kubernetes, nomad", "import crontab": "missing FILE", "import crontab no-such-file": "no-such-file",
	} {
		if got := sortie(t, nil, "", strings.Fields(args)...); (got.code == 0) != (want == "") || !strings.Contains(got.stderr, want) {
			t.Errorf("%s: got %+v, want %q", args, got, want)
		}
	}
}

//go:build unix

package command_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/twin/scenario"
)

func TestTwinInitWritesAScenarioThatRuns(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "month.yaml")
	if r := sortie(t, nil, "", "twin", "init", file); r.code != 0 || r.stdout != file+"\n" || !strings.Contains(r.stderr, "twin run") {
		t.Fatalf("got %+v", r)
	}
	if r := sortie(t, nil, "", "twin", "init", file); r.code == 0 {
		t.Errorf("got %+v, want a refusal to replace the file", r)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), "days: 31", "days: 3", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(filepath.Dir(file), "month.html")
	r := sortie(t, nil, "", "twin", "run", file, "--set", "limits.machines=1", "--html", page)
	if r.code != 0 || !strings.Contains(r.stdout, "with limits.machines=1") || !strings.Contains(r.stdout, "nightly-report") {
		t.Fatalf("got %+v", r)
	}
	if html, err := os.ReadFile(page); err != nil || !strings.Contains(string(html), "<svg") {
		t.Errorf("got page %s, %v", html, err)
	}
}

func TestTwinRunReadsJobFilesBesideTheScenario(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"job.yaml":    "id: hourly\nimage: a\nschedule: 0 * * * *\n",
		"day.yaml":    "start: \"2027-03-01\"\ndays: 1\njobs:\n  - file: job.yaml\n    duration: {fixed: 1m}\n",
		"sensor.yaml": "id: hourly\nimage: a\nsensor: {}\n",
		"bad.yaml":    "start: \"2027-03-01\"\ndays: 1\njobs:\n  - file: sensor.yaml\n    duration: {fixed: 1m}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := sortie(t, nil, "", "twin", "run", filepath.Join(dir, "day.yaml"), "--seed", "7", "--json")
	var results []scenario.Result
	if err := json.Unmarshal([]byte(r.stdout), &results); r.code != 0 || err != nil || len(results) != 1 {
		t.Fatalf("got %+v, %v", r, err)
	}
	// The play ends at midnight and begins after it: hours 1 to 23.
	if j := results[0].Jobs[0]; results[0].Seed != 7 || j.Due != 23 || j.Started != 23 || j.Succeeded != 23 {
		t.Errorf("got %+v", results[0].Jobs)
	}
	r = sortie(t, nil, "", "twin", "run", filepath.Join(dir, "bad.yaml"))
	if r.code != 2 || !strings.Contains(r.stderr, "bad.yaml:4: jobs.0.file: ") || !strings.Contains(r.stderr, "sensor") {
		t.Errorf("got %+v, want the line and the part that is not modelled", r)
	}
	if r := sortie(t, nil, "", "twin", "run", filepath.Join(dir, "day.yaml"), "--set", "jobs=1"); r.code != 2 || !strings.Contains(r.stderr, "want one of days") {
		t.Errorf("got %+v", r)
	}
}

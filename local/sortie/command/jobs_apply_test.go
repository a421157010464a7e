package command_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	problem "github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// folderOf writes files by name and returns their folder.
func folderOf(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestApplyReadsFoldersAndDocuments(t *testing.T) {
	t.Parallel()
	env := jobServer(t)
	folder := folderOf(t, map[string]string{
		"a.yaml":          "---\n# two jobs\nid: a\nimage: x\n---\n---\nid: b\nimage: x\n--- # no job\n",
		"c.json":          `{"id": "c", "image": "x"}`,
		"job.schema.json": "{}",
		"notes.txt":       "no job",
	})
	more := written(t, "id: d\nimage: x\n")
	for _, want := range []string{"created a, version 1 created b, version 1 created c, version 1 created d, version 1", "unchanged a, version 1 unchanged b, version 1 unchanged c, version 1 unchanged d, version 1"} {
		got := sortie(t, env, "", "jobs", "apply", "-f", folder, "-f", more)
		var heads []string
		for line := range strings.Lines(got.stdout) {
			if !strings.HasPrefix(line, " ") {
				heads = append(heads, strings.TrimSpace(line))
			}
		}
		if got.code != 0 || strings.Join(heads, " ") != want {
			t.Errorf("got %+v, want %s", got, want)
		}
	}
	var result struct{ Jobs []struct{ ID, Result string } }
	got := sortie(t, env, "", "jobs", "apply", "-f", folder, "-f", more, "--json")
	if err := json.Unmarshal([]byte(got.stdout), &result); err != nil || len(result.Jobs) != 4 || result.Jobs[3].ID != "d" {
		t.Errorf("got %+v, want four jobs", got)
	}
}

// TestApplyChangesNothingIfOneFileIsWrong has a problem that the client finds, and one of the
// server. Each has its line in the file.
func TestApplyChangesNothingIfOneFileIsWrong(t *testing.T) {
	t.Parallel()
	env := jobServer(t)
	for name, row := range map[string]struct{ second, want string }{
		"malformed":         {"id: b\nimage: x\nlogs: all\n", ":6: logs: unknown value"},
		"twice":             {"id: a\nimage: y\n", ":4: id: \"a\" is the id of a job in "},
		"refused by server": {"id: b\nimage: x\nconstraints: {preRunHook: {url: \"https://10.0.0.1/\"}}\n", ":6: constraints.preRunHook.url: "},
	} {
		file := written(t, "id: a\nimage: x\n---\n"+row.second)
		if got := sortie(t, env, "", "jobs", "apply", "-f", file); got.code != 2 || !strings.Contains(got.stderr, file+row.want) {
			t.Errorf("%s: got %+v, want %q", name, got, row.want)
		}
		if got := sortie(t, env, "", "jobs", "show", "a"); got.code != 4 {
			t.Errorf("%s: got %+v, want no job", name, got)
		}
	}
	if got := sortie(t, env, "", "jobs", "apply", "-f", t.TempDir(), "--prune", "*", "--yes"); got.code != 2 || !strings.Contains(got.stderr, "no job files") {
		t.Errorf("an empty folder: got %+v, want exit code 2", got)
	}
}

func TestPruneDeletesWhatItsPatternOwns(t *testing.T) {
	t.Parallel()
	env := jobServer(t)
	all := written(t, "id: reports-a\nimage: x\n---\nid: reports-b\nimage: x\n---\nid: backup\nimage: x\n")
	if got := sortie(t, env, "", "jobs", "apply", "-f", all); got.code != 0 {
		t.Fatal(got)
	}
	only := written(t, "id: reports-a\nimage: y\n")
	for _, step := range []struct {
		args []string
		code int
		want string
		left int
	}{
		{[]string{"apply", "--prune", "reports-*"}, 2, "would change reports-a, version 2\n  ~ image: \"x\" -> \"y\"\nwould delete reports-b\n", 3},
		{[]string{"apply", "--prune", "reports-*", "--dry-run", "--yes"}, 0, "would change reports-a, version 2\n  ~ image: \"x\" -> \"y\"\nwould delete reports-b\n", 3},
		{[]string{"diff", "--prune", "reports-*"}, 0, "would change reports-a, version 2\n  ~ image: \"x\" -> \"y\"\nwould delete reports-b\n", 3},
		{[]string{"diff", "--exit-code"}, 1, "would change reports-a, version 2\n  ~ image: \"x\" -> \"y\"\n", 3},
		{[]string{"apply", "--prune", "reports-["}, 2, "", 3},
		{[]string{"apply", "--prune", "reports-*", "--yes"}, 0, "changed reports-a, version 2\n  ~ image: \"x\" -> \"y\"\ndeleted reports-b\n", 2},
		{[]string{"apply", "--prune", "reports-*"}, 0, "unchanged reports-a, version 2\n", 2},
		{[]string{"diff", "--exit-code"}, 0, "unchanged reports-a, version 2\n", 2},
	} {
		got := sortie(t, env, "", append([]string{"jobs", step.args[0], "-f", only}, step.args[1:]...)...)
		if got.code != step.code || got.stdout != step.want {
			t.Errorf("%v: got %+v, want %d and %q", step.args, got, step.code, step.want)
		}
		if list := sortie(t, env, "", "jobs", "list"); strings.Count(list.stdout, "\n")-1 != step.left {
			t.Errorf("%v: got %s, want %d jobs", step.args, list.stdout, step.left)
		}
	}
}

// TestApplySaysThatNoRunnerHasTheImage stores a job, and applies its file again.
func TestApplySaysThatNoRunnerHasTheImage(t *testing.T) {
	t.Parallel()
	env := jobServer(t, func(s *apitest.Settings) {
		s.Service.CheckImage = func(_ context.Context, _, image string) error {
			if image == "a" {
				return nil
			}
			return problem.New(problem.Image, `no runner has %q. The runner process has exec:\x, "b"`, image)
		}
	})
	file := written(t, "id: a\nimage: a\n---\nid: b\nimage: x\n")
	want := file + `: warning: image: no runner has "x". The runner process has exec:\x, "b"` + "\n"
	for _, more := range [][]string{{"diff"}, {"apply", "--dry-run"}, {"apply"}, {"apply"}} {
		got := sortie(t, env, "", append([]string{"jobs", more[0], "-f", file}, more[1:]...)...)
		if got.code != 0 || got.stderr != want {
			t.Errorf("%v: got %+v, want one warning %q", more, got, want)
		}
	}
	got := sortie(t, env, "", "jobs", "apply", "-f", file, "--json")
	if !strings.Contains(got.stdout, `"image: no runner has \"x\".`) || got.stderr != "" {
		t.Errorf("got %+v, want the warning in the JSON alone", got)
	}
}

// TestJobFilesNameProgramsOfTheirFolder checks files with a script in their own folder.
func TestJobFilesNameProgramsOfTheirFolder(t *testing.T) {
	t.Parallel()
	folder := folderOf(t, map[string]string{
		"hello.py": "", "run.sh": "",
		"python.yaml":  "id: python\nimage: exec:sh\ncommand: [hello.py, -x, missing.txt, .]\n",
		"script.yaml":  "id: script\nimage: exec:./run.sh\n",
		"name.yaml":    "id: name\nimage: exec:run.sh\n",
		"missing.yaml": "id: missing\n# a comment\nimage: exec:no-such-program\nlogs: all\n",
		"bound.yaml":   "id: bound\nimage: hello.py\ncommand: [hello.py]\n",
	})
	if err := os.Chmod(filepath.Join(folder, "run.sh"), 0o700); err != nil { //nolint:gosec // G302: a program
		t.Fatal(err)
	}
	answers := map[string]func(http.ResponseWriter){}
	for _, id := range []string{"python", "script", "name", "bound"} {
		answers["GET /v1/jobs/"+id] = jsonOf(404, `{"status": 404, "code": "NOT_FOUND", "detail": "no such job"}`)
		answers["PUT /v1/jobs/"+id+"?dryRun=true"] = jsonOf(200, `{"id": "`+id+`", "version": 1}`)
	}
	env := responses(t, answers)
	for name, want := range map[string]string{
		"python": `+ command: ["` + filepath.Join(folder, "hello.py") + `","-x","missing.txt","` + folder + `"]`,
		"script": `+ image: "exec:` + filepath.Join(folder, "run.sh") + `"`,
		"name":   `+ image: "exec:` + filepath.Join(folder, "run.sh") + `"`,
		"bound":  `+ command: ["hello.py"]`,
	} {
		got := sortie(t, env, "", "jobs", "diff", "-f", filepath.Join(folder, name+".yaml"))
		if got.code != 0 || !strings.Contains(strings.ReplaceAll(got.stdout, ", ", ","), strings.ReplaceAll(want, ", ", ",")) {
			t.Errorf("%s: got %+v, want %s", name, got, want)
		}
	}
	file := filepath.Join(folder, "missing.yaml")
	got := sortie(t, nil, "", "jobs", "validate", file)
	for _, want := range []string{file + ":3: image: cannot find the program in " + folder, file + ":4: logs: "} {
		if got.code != 2 || !strings.Contains(got.stderr, want) {
			t.Errorf("got %+v, want %q", got, want)
		}
	}
	if got := sortie(t, nil, "", "jobs", "validate", filepath.Join(folder, "bound.yaml"), filepath.Join(folder, "name.yaml")); got.code != 0 || got.stdout != "valid bound, "+filepath.Join(folder, "bound.yaml")+"\nvalid name, "+filepath.Join(folder, "name.yaml")+"\n" {
		t.Errorf("got %+v, want two valid files", got)
	}
}

func TestInitAsksFiveQuestions(t *testing.T) {
	t.Parallel()
	folder := folderOf(t, map[string]string{"my report.sh": ""})
	answers := "'my report.sh'\nsh 'my report.sh' --all\n\nno schedule\n@daily\nEurope/Nowhere\nEurope/Berlin\n3\n"
	got := sortie(t, nil, answers, "jobs", "init", "--folder", folder)
	file := filepath.Join(folder, "my-report.yaml")
	if got.code != 0 || got.stdout != file+"\n" || strings.Count(got.stderr, "]: ") != 8 || !strings.Contains(got.stderr, "my report.sh: not executable: want an interpreter first") || !strings.Contains(got.stderr, "schedule: ") || !strings.Contains(got.stderr, "timeZone: ") {
		t.Fatalf("got %+v, want five questions, of which three twice", got)
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.HasPrefix(string(text), "# yaml-language-server: $schema=./job.schema.json\n") {
		t.Errorf("got %s, %v, want a line for editors", text, err)
	}
	var d struct {
		ID, Image, Schedule string
		TimeZone            string `yaml:"timeZone"`
		Command             []string
		RetryConfig         struct {
			MaxRetries int `yaml:"maxRetries"`
		} `yaml:"retryConfig"`
	}
	if err := yaml.Unmarshal(text, &d); err != nil || d.ID != "my-report" || d.Image != "exec:sh" || strings.Join(d.Command, "|") != "my report.sh|--all" || d.Schedule != "@daily" || d.TimeZone != "Europe/Berlin" || d.RetryConfig.MaxRetries != 3 {
		t.Errorf("got %+v, %v", d, err)
	}
	if schema, err := os.ReadFile(filepath.Join(folder, "job.schema.json")); err != nil || !json.Valid(schema) || len(schema) <= len(contract.JobSchema()) || !strings.Contains(string(schema), `{"file": {"type": "string"`) {
		t.Errorf("got %v, want the schema of files beside the file", err)
	}
	if got := sortie(t, nil, "", "jobs", "validate", folder); got.code != 0 || got.stdout != "valid my-report, "+file+"\n" {
		t.Errorf("got %+v, want a valid file", got)
	}
	whole := written(t, regexp.MustCompile(`(?m)^# (\w+:|  \w+:)`).ReplaceAllString(string(text), "$1"))
	if got := sortie(t, nil, "", "jobs", "validate", whole); got.code != 0 || !strings.Contains(string(text), "\n# retention: ") {
		t.Errorf("got %+v, want the fields of the comments valid", got)
	}
	if got := sortie(t, nil, answers, "jobs", "init", "--folder", folder); got.code != 1 || !strings.Contains(got.stderr, "exists") {
		t.Errorf("again: got %+v, want the file kept", got)
	}
	if got := sortie(t, map[string]string{"TZ": "Asia/Tokyo"}, "", "jobs", "init", "--folder", folder, "--json"); got.code != 0 || !strings.Contains(got.stdout, `"id": "echo"`) || !strings.Contains(got.stderr, "Time zone [Asia/Tokyo]") {
		t.Errorf("without answers: got %+v, want those in brackets", got)
	}
	for _, refused := range []string{"no-such-program\n", "sh\nx\nno schedule\n"} {
		if got := sortie(t, nil, refused, "jobs", "init", "--folder", t.TempDir()); got.code != 2 || got.stdout != "" {
			t.Errorf("%q and no more: got %+v, want no file with the answer in brackets", refused, got)
		}
	}
	for _, hostile := range []string{"'\n", "\"unclosed\n", "no-such-program\n", "sh\n../../etc/x\n", "sh\nx\ny\n"} {
		if got := sortie(t, nil, hostile, "jobs", "init", "--folder", t.TempDir()); got.code == 0 && strings.Contains(got.stdout, "..") {
			t.Errorf("%q: got %+v, want no file outside of the folder", hostile, got)
		}
	}
}

// TestOwnersKeepTheirJobs applies the files of two repositories.
func TestOwnersKeepTheirJobs(t *testing.T) {
	t.Parallel()
	env := jobServer(t)
	reports := written(t, "id: daily\nimage: x\nlabels: {repo: reports}\n---\nid: weekly\nimage: x\nlabels: {repo: reports}\n")
	billing := written(t, "id: invoices\nimage: x\nlabels: {repo: billing}\n")
	stolen := written(t, "id: daily\nimage: y\nlabels: {repo: billing}\n---\nid: new\nimage: y\nlabels: {repo: billing}\n")
	less := written(t, "id: daily\nimage: x\nlabels: {repo: reports}\n")
	for _, step := range []struct {
		file, owner string
		code        int
		message     string
		left        string
	}{
		{reports, "repo=reports", 0, "", "daily weekly"},
		{billing, "repo=billing", 0, "", "daily invoices weekly"},
		{billing, "repo=reports", 2, `has the label repo="billing", want labels: {repo: reports}`, "daily invoices weekly"},
		{stolen, "repo=billing", 2, "the stored job daily does not have the label", "daily invoices weekly"},
		{less, "repo", 2, "malformed label", "daily invoices weekly"},
		{less, "repo=a b", 2, "malformed label", "daily invoices weekly"},
		{less, "repo=reports", 0, "", "daily invoices"},
	} {
		got := sortie(t, env, "", "jobs", "apply", "-f", step.file, "--owner", step.owner, "--prune", "*", "--yes")
		if got.code != step.code || !strings.Contains(got.stderr, step.message) {
			t.Errorf("%s of %s: got %+v, want %d and %q", step.file, step.owner, got, step.code, step.message)
		}
		folder := t.TempDir()
		if out := sortie(t, env, "", "jobs", "export", "--out", folder); out.code != 0 {
			t.Fatal(out)
		}
		names, _ := filepath.Glob(filepath.Join(folder, "*.yaml"))
		for i, name := range names {
			names[i] = strings.TrimSuffix(filepath.Base(name), ".yaml")
		}
		if left := strings.Join(names, " "); left != step.left {
			t.Errorf("%s of %s: got the jobs %s, want %s", step.file, step.owner, left, step.left)
		}
		if again := sortie(t, env, "", "jobs", "diff", "--exit-code", "-f", folder); again.code != 0 {
			t.Errorf("got %+v of the exported files, want no difference", again)
		}
	}
	if all := sortie(t, env, "", "jobs", "export", "-l", "repo=billing"); !strings.HasPrefix(all.stdout, "id: invoices\n") || strings.Contains(all.stdout, "---") {
		t.Errorf("got %q, want the file of invoices", all.stdout)
	}
}

// TestFoldersInFoldersAreNotPruned checks that jobs of files that are not read stay.
func TestFoldersInFoldersAreNotPruned(t *testing.T) {
	t.Parallel()
	env, folder := jobServer(t), t.TempDir()
	for name, text := range map[string]string{
		"a.yaml": "id: above\nimage: x\n", "team/b.yml": "id: below\nimage: x\n", "team/values.yaml": "replicas: 3\n", ".git/c.yaml": "id: hidden\nimage: x\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := sortie(t, env, "", "jobs", "apply", "-f", folder)
	if want := "job below is left out"; got.code != 0 || strings.Count(got.stderr, "left out") != 1 || !strings.Contains(got.stderr, want) {
		t.Errorf("got %+v, want a note with %q alone", got, want)
	}
	team := filepath.Join(folder, "team", "b.yml")
	if got := sortie(t, env, "", "jobs", "apply", "-f", team); got.code != 0 {
		t.Fatal(got)
	}
	got = sortie(t, env, "", "jobs", "apply", "-f", folder, "--prune", "*", "--yes")
	if want := "--prune: job below would be deleted, but " + team + " has it"; got.code != 2 || !strings.Contains(got.stderr, want) {
		t.Errorf("got %+v, want %q", got, want)
	}
	got = sortie(t, env, "", "jobs", "apply", "-f", folder, "-f", team, "--prune", "*", "--yes")
	if got.code != 0 || got.stderr != "" || !strings.Contains(got.stdout, "unchanged below") {
		t.Errorf("got %+v, want both jobs and no note", got)
	}
}

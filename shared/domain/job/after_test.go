package job_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// TestDependenciesHaveTwoForms reads and writes dependencies.
func TestDependenciesHaveTwoForms(t *testing.T) {
	t.Parallel()
	d, problems := job.Parse([]byte("id: a\nimage: b\nafter: [c, {job: d, when: always}]\n"), nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	text, err := json.Marshal(d.After)
	if err != nil || string(text) != `["c",{"job":"d","when":"always"}]` {
		t.Errorf("got %s and %v", text, err)
	}
	var again []job.Dependency
	if err := json.Unmarshal(text, &again); err != nil || again[0].Job != "c" || again[1].When != run.WhenAlways {
		t.Errorf("got %+v and %v", again, err)
	}
	for document, want := range map[string]string{
		"after: c": "after:", "after: [1]": "after.0: 1, want the id of a job or {job: ID, when: success}",
		"after: [{jobs: c}]": `after.0: missing job`, "items: {from: {}}": "items.from.job: missing job", "items: {from: b}": "items.from: \"b\", want an object",
		"after: [C]":                    `after.0: malformed job "C"`,
		"matrix: {a: [1, 2, \"1\", 2]}": `matrix.a.2: the value "1" twice, want each once`,
	} {
		if _, problems := job.Parse([]byte("id: a\nimage: b\n"+document+"\n"), nil); len(problems) == 0 || !strings.Contains(problems[0].String(), want) {
			t.Errorf("%s: got %v, want %s", document, problems, want)
		}
	}
}

// TestGraphIsOrdered lists the jobs of a graph, each after those that it comes after.
func TestGraphIsOrdered(t *testing.T) {
	t.Parallel()
	jobs := map[string]*job.Job{}
	add := func(id string, after ...string) {
		j := job.Job{ID: id}
		for _, other := range after {
			j.Definition.After = append(j.Definition.After, job.Dependency{Job: other})
			*jobs[other] = jobs[other].WithFollower(id, true)
		}
		jobs[id] = &j
	}
	add("z")
	add("stale")
	add("b", "z")
	add("a", "z")
	add("m", "a", "b")
	*jobs["z"] = jobs["z"].WithFollower("stale", true)
	found, err := jobs["m"].Graph(func(id string) (*job.Job, error) { return jobs[id], nil })
	var ids []string
	for _, j := range found {
		ids = append(ids, j.ID)
	}
	if got := strings.Join(ids, " "); err != nil || got != "z a b m" {
		t.Errorf("got %q and %v, want z a b m", got, err)
	}
}

package suite

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	sortie "github.com/sortie-dev/sortie"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/local/sortie/importer"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// jobDocuments have the job files that users read first.
var jobDocuments = []string{"shared/domain/job/README.md", "shared/domain/job/CHILDREN.md", "shared/domain/job/SENSORS.md", "shared/domain/job/FILES.md"}

var jobFile = regexp.MustCompile(`(?ms)^cat >\s*\S+\.yaml <<'(?:END|EOF)'\n(.*?)^(?:END|EOF)$`)

// imported are the files of other programs in a document, by the program.
var imported = map[string]*regexp.Regexp{
	"crontab":    regexp.MustCompile(`(?ms)^cat >shop\.cron <<'END'\n(.*?)^END$`),
	"kubernetes": regexp.MustCompile(`(?ms)^cat >prune\.yml <<'END'\n(.*?)^END$`),
	"nomad":      regexp.MustCompile(`(?ms)^cat >scan\.nomad <<'END'\n(.*?)^END$`),
	"github":     regexp.MustCompile(`(?ms)^cat >weekly\.yml <<'END'\n(.*?)^END$`),
}

// documentedFields are the fields of jobs that must be in one of the files.
var documentedFields = []string{
	"labels", "inputs", "after", "items", "matrix", "schedules", "startAt", "calendars", "constraints", "actions", "retention", "retryConfig", "sensor",
}

// documentedJobs stores the job files of the documents and runs each job: on request, or after
// another.
func documentedJobs(c *Case) {
	jobs, paths, fields := c.documented(), map[string]string{}, map[string]bool{}
	for _, d := range jobs {
		id := fmt.Sprint(d["id"])
		for name := range maps.Keys(d) {
			fields[name] = true
		}
		paths[id] = c.job(documentedJob(id), c.renamed(d))
	}
	for _, name := range documentedFields {
		if !fields[name] {
			c.T.Errorf("no job file of %v has %s", jobDocuments, name)
		}
	}
	for _, d := range jobs {
		if d["after"] != nil {
			continue // an earlier job starts it
		}
		request := contract.JobRunRequest{}
		if inputs, ok := d["inputs"].(map[string]any); ok && inputs["day"] != nil {
			request.Inputs = map[string]json.RawMessage{"day": json.RawMessage(`"2027-03-01"`)}
		}
		path := paths[fmt.Sprint(d["id"])]
		send[contract.RunAccepted](c, http.MethodPost, path+"/runs", string(outside.Encode(c.T, request)), http.StatusAccepted)
	}
	for _, d := range jobs {
		id := fmt.Sprint(d["id"])
		skipped := id == "alert" // it waits for a failure
		if r := c.runsThat(paths[id], 1, hasEnded)[0]; r.State != "Completed" || r.Skipped != skipped {
			c.T.Errorf("job %s: got %s, skipped %v: %+v, want Completed, skipped %v", id, r.State, r.Skipped, r.Fault, skipped)
		}
	}
}

// importedJobs converts the files of other programs in the document, stores the jobs, and runs them.
func importedJobs(c *Case) {
	text := sortie.Documents()["shared/domain/job/FILES.md"]
	for program, file := range imported {
		found := file.FindSubmatch(text)
		if found == nil {
			c.T.Fatalf("got no file of %s in FILES.md", program)
		}
		jobs, _, err := importer.Convert(program, importer.Source{Name: "-", Text: found[1]})
		if err != nil || len(jobs) != 1 {
			c.T.Fatalf("%s: got %d jobs, %v, want one", program, len(jobs), err)
		}
		var d document
		if err := json.Unmarshal(outside.Encode(c.T, jobs[0].Definition), &d); err != nil {
			c.T.Fatal(err)
		}
		if d["schedule"] == nil {
			c.T.Errorf("%s: got no schedule in %v", program, d)
		}
		path := c.job("imported-"+program, c.renamed(d))
		send[contract.RunAccepted](c, http.MethodPost, path+"/runs", "{}", http.StatusAccepted)
		if r := c.runsThat(path, 1, hasEnded)[0]; r.State != "Completed" || r.Skipped {
			c.T.Errorf("%s: got %s, skipped %v: %+v, want Completed", program, r.State, r.Skipped, r.Fault)
		}
	}
}

// documentedJob returns the name of a job of the documents, which no other test has.
func documentedJob(id string) string { return "documented-" + id }

// documented returns the jobs of the documents. Exports are left out: they need a source.
func (c *Case) documented() (jobs []document) {
	c.T.Helper()
	all := sortie.Documents()
	for _, name := range jobDocuments {
		for _, found := range jobFile.FindAllSubmatch(all[name], -1) {
			var d document
			if err := yaml.Unmarshal(found[1], &d); err != nil {
				c.T.Fatalf("%s: %v in %s", name, err, found[1])
			}
			if d["export"] == nil {
				jobs = append(jobs, d)
			}
		}
	}
	return jobs
}

// renamed returns a job with the names of this test, whose program is that of the target.
func (c *Case) renamed(d document) document {
	d = maps.Clone(d)
	image, ofHost := strings.CutPrefix(fmt.Sprint(d["image"]), "exec:")
	switch {
	case !ofHost: // an image of a registry, which the target does not have
		d["command"] = []any{"-c", "true"}
	case image != "/bin/sh":
		command, _ := d["command"].([]any)
		d["command"] = append([]any{"-c", image + ` "$@"`, image}, command...)
	}
	named := func(id any) string { return jobID(c.jobPath(documentedJob(fmt.Sprint(id)))) }
	if after, ok := d["after"].([]any); ok {
		after = slices.Clone(after)
		for i, a := range after {
			if need, is := a.(map[string]any); is {
				after[i] = document(maps.Clone(need)).with("job", named(need["job"]))
			} else {
				after[i] = named(a)
			}
		}
		d["after"] = after
	}
	if items, ok := d["items"].(map[string]any); ok {
		if items["file"] != nil { // sortie jobs apply reads it
			d["items"] = []string{"in/a.tif", "in/b.tif"}
		}
		if from, is := items["from"].(map[string]any); is {
			d["items"] = document{"from": document(maps.Clone(from)).with("job", named(from["job"]))}
		}
	}
	delete(d, "id")
	return d.with("image", ProgramImage)
}

package console_test

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/spec"
)

var shownField = regexp.MustCompile(`name="(key|shown)" value="([^"]*)"`)

// hidden returns the fields with which the form of a page continues.
func hidden(page string) (fields []string) {
	for _, found := range shownField.FindAllStringSubmatch(page, -1) {
		fields = append(fields, found[1], found[2])
	}
	return fields
}

func TestRunIsRepeatedWithChanges(t *testing.T) {
	t.Parallel()
	h := setup(t)
	id := h.program(t, `{"image":"a:1","command":["-x","<b>"],"env":{"LEVEL":"info","KEY":{"secretRef":"key"}},"input":"YWJj"}`)
	b := h.signedIn(t, ownerToken)
	path := "/console/runs/" + id
	if text := b.page(path+"/changes", "has not ended"); strings.Contains(text, `name="image"`) {
		t.Error("got a form for a run that has not ended")
	}
	b.post(path + "/cancel")
	b.page(path, `href="../runs/`+id+`/changes"`)
	text := b.page(path+"/changes", `name="image" value="a:1"`, "-x\n&lt;b&gt;</textarea>", `name="parameter.LEVEL" value="info"`, "secret key", "Show the changes")
	fields := []string{"image", "a:2", "command", "-y\r\n<i>", "parameter.LEVEL", "debug", "default.LEVEL", "info", "more", "NEW=<script>\r\n", "priority", "batch"}
	start := slices.Concat(fields, []string{"step", "start"})
	checked := b.post(path+"/changes", slices.Concat(start, hidden(text))...).Body // changes that no page has shown
	for _, want := range []string{"Nothing is started yet", "a:1", "a:2", "environment LEVEL", "debug", "NEW=&lt;script&gt;", "Start the new run"} {
		if !strings.Contains(checked, want) {
			t.Errorf("got no %q in %s", want, mainPart(checked))
		}
	}
	if strings.Contains(checked, "<script>alert") || strings.Contains(checked, "<i>") || strings.Count(b.page("/console/runs"), `data-run="`) != 1 {
		t.Error("got a run, or markup of a client, before the changes were confirmed")
	}
	changed := b.post(path+"/changes", slices.Concat(start, hidden(checked), []string{"image", "a:3"})...)
	if changed.Status != http.StatusOK || !strings.Contains(changed.Body, "a:3") {
		t.Errorf("got %d to %q for a change after the check, want its difference first", changed.Status, changed.Header.Get("Location"))
	}
	var to string
	for range 2 { // a form that is sent twice
		answer := b.post(path+"/changes", slices.Concat(start, hidden(checked))...)
		if answer.Status != http.StatusSeeOther || to != "" && answer.Header.Get("Location") != to {
			t.Fatalf("got %d %s to %q, want the new run", answer.Status, mainPart(answer.Body), answer.Header.Get("Location"))
		}
		to = answer.Header.Get("Location")
	}
	b.page(to, "repeats the earlier one with changes", "a:2", `href="../runs/`+id+`"`)
	made := h.Run(t, strings.TrimSuffix(strings.TrimPrefix(to, "/console/runs/"), "?done=changed"))
	p := made.Work.Program
	if made.RetryOf != id || made.Work.Image != "a:2" || !slices.Equal(p.Command, []string{"-y", "<i>"}) || p.Env["LEVEL"].Value != "debug" || p.Env["NEW"].Value != "<script>" ||
		p.Env["KEY"].SecretRef != "key" || p.Input.Size != 3 || made.Priority != spec.PriorityBatch {
		t.Errorf("got %+v with %+v, want the changes and the rest of the old run", made, p)
	}
	if r := h.Run(t, id); r.Work.Image != "a:1" || !slices.Equal(r.Work.Program.Command, []string{"-x", "<b>"}) {
		t.Errorf("got %+v, want the old run unchanged", r.Work)
	}
}

func TestExportIsRepeatedWithOptions(t *testing.T) {
	t.Parallel()
	h := setup(t)
	id := h.Failure(t, "too deep")
	b := h.signedIn(t, ownerToken)
	path := "/console/runs/" + id + "/changes"
	text := b.page(path, `name="maxDepth" value="`, `<option selected>full</option>`)
	fields := []string{"recursive", "true", "maxDepth", "2", "parallelBatchSize", "10", "includeOcr", "true", "cheimarrosMode", "full", "priority", "normal"}
	checked := b.post(path, slices.Concat(fields, []string{"step", "check"}, hidden(text))...).Body
	answer := b.post(path, slices.Concat(fields, []string{"step", "start"}, hidden(checked))...)
	to := answer.Header.Get("Location")
	if answer.Status != http.StatusSeeOther {
		t.Fatalf("got %d %s, want the new run", answer.Status, mainPart(answer.Body))
	}
	made := h.Run(t, strings.TrimSuffix(strings.TrimPrefix(to, "/console/runs/"), "?done=changed"))
	if options := string(made.Work.Options); !strings.Contains(options, `"maxDepth":2`) || made.RetryOf != id {
		t.Errorf("got options %s of a retry of %s, want the changes", options, made.RetryOf)
	}
	for _, depth := range []string{"", "x", "101"} {
		wrong := slices.Clone(fields)
		wrong[3] = depth
		checked := b.post(path, slices.Concat(wrong, []string{"step", "check"}, hidden(text))...).Body
		answer := b.post(path, slices.Concat(wrong, []string{"step", "start"}, hidden(checked))...)
		if answer.Status != http.StatusUnprocessableEntity || !strings.Contains(answer.Body, "maxDepth") {
			t.Errorf("%q: got %d %s, want a refusal of the depth", depth, answer.Status, mainPart(answer.Body))
		}
	}
}

// TestRunOfAJobIsRepeatedWithVariables checks that the form has only what a run of a job can change.
func TestRunOfAJobIsRepeatedWithVariables(t *testing.T) {
	t.Parallel()
	h := setup(t)
	b := h.signedIn(t, ownerToken)
	h.Call(t, http.MethodPut, "/v1/jobs/nightly", `{"image":"exec:/bin/true","command":["x"],"env":{"DAY":"monday"}}`, "Authorization", "Bearer "+ownerToken)
	b.page("/console/jobs/nightly")
	to := b.post("/console/jobs/nightly/run", "parameter.DAY", "monday", "default.DAY", "monday").Header.Get("Location")
	path := strings.TrimSuffix(to, "?done=job-run")
	b.page(path)
	b.post(path + "/cancel")
	text := b.page(path+"/changes", `name="parameter.DAY" value="monday"`, "The rest is that of the job")
	if strings.Contains(text, `name="image"`) || strings.Contains(text, `name="command"`) {
		t.Error("got fields for the image or the command of a job")
	}
	fields := []string{"parameter.DAY", "friday", "default.DAY", "monday", "priority", "normal"}
	checked := b.post(path+"/changes", slices.Concat(fields, []string{"step", "check"}, hidden(text))...).Body
	answer := b.post(path+"/changes", slices.Concat(fields, []string{"step", "start"}, hidden(checked))...)
	if want := "--param DAY=friday"; !strings.Contains(checked, want) {
		t.Errorf("got no %q in %s", want, mainPart(checked))
	}
	b.page(answer.Header.Get("Location"), "friday", "nightly")

	// The jobs after it are repeated, too; the API refuses that without such a job.
	fields = append(fields, "downstream", "1")
	text = b.page(path+"/changes", `name="downstream"`)
	checked = b.post(path+"/changes", slices.Concat(fields, []string{"step", "check"}, hidden(text))...).Body
	if !strings.Contains(checked, "jobs after it") || !strings.Contains(checked, "--downstream") {
		t.Errorf("got %s, want the jobs after it among the changes", mainPart(checked))
	}
	answer = b.post(path+"/changes", slices.Concat(fields, []string{"step", "start"}, hidden(checked))...)
	if answer.Status != http.StatusUnprocessableEntity || !strings.Contains(answer.Body, "no job comes after job nightly") {
		t.Errorf("got %d %s, want a refusal", answer.Status, mainPart(answer.Body))
	}
	h.Call(t, http.MethodPut, "/v1/jobs/tidy", `{"image":"exec:/bin/true","after":["nightly"]}`, "Authorization", "Bearer "+ownerToken)
	if answer = b.post(path+"/changes", slices.Concat(fields, []string{"step", "start"}, hidden(checked))...); answer.Status != http.StatusSeeOther {
		t.Errorf("got %d %s, want the new run", answer.Status, mainPart(answer.Body))
	}
}

func TestRerunWithChangesIsProtected(t *testing.T) {
	t.Parallel()
	h := setup(t)
	id := h.program(t, `{"image":"a"}`)
	b := h.signedIn(t, ownerToken)
	b.page("/console/runs/" + id)
	b.post("/console/runs/" + id + "/cancel")
	path := "/console/runs/" + id + "/changes"
	reader, other := h.signedIn(t, readerToken), h.signedIn(t, otherToken)
	if text := reader.page("/console/runs/" + id); strings.Contains(text, "/changes") {
		t.Error("got the link for a reader")
	}
	for name, row := range map[string]struct{ got, want int }{
		"form of a reader":         {reader.get(path).Status, http.StatusForbidden},
		"action of a reader":       {reader.post(path, "image", "b", "step", "start").Status, http.StatusForbidden},
		"form of another tenant":   {other.get(path).Status, http.StatusNotFound},
		"action of another tenant": {other.post(path, "image", "b").Status, http.StatusNotFound},
		"foreign origin":           {b.submit(path, b.form, []string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}, "image", "b").Status, http.StatusForbidden},
		"no token":                 {b.submit(path, "", []string{"Origin", b.URL, "Sec-Fetch-Site", "same-origin"}, "image", "b").Status, http.StatusForbidden},
	} {
		if row.got != row.want {
			t.Errorf("%s: got %d, want %d", name, row.got, row.want)
		}
	}
	b.page(path)
	for _, text := range hostile[:7] {
		for _, field := range []string{"image", "command", "more", "priority"} {
			if page := b.post(path, "image", "a", "command", "", field, text, "step", "check").Body; strings.Contains(page, "<script>alert") || strings.Contains(page, "<img") || strings.Contains(page, "\u202e") {
				t.Errorf("%s %q: got the text in the page as it is", field, text)
			}
		}
	}
}

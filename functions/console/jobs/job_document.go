package jobs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"github.com/goccy/go-yaml"

	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// DocumentPage shows the document of a job and its versions. Its form checks a changed document,
// shows the changes, and stores it.
var DocumentPage = page.Page{
	Name: "job-document", Path: "jobs/{job_id}/document", Scope: access.RunsRead, Query: []string{"version", "done"},
	Show: showDocument,
	Actions: []page.Action{
		{Path: "jobs/{job_id}/document", Scope: access.JobsWrite, Show: editJob},
	},
}

// NewPage has the form for the document of a new job.
var NewPage = page.Page{
	Name: "new-job", Path: "new-job", Scope: access.JobsWrite,
	Show: func(*page.Visit) (page.View, error) {
		return page.View{Title: "New job", JSON: "/schemas/job.json", Command: ui.Command("jobs", "apply", "-f", "job.yaml"), Content: edit{Text: exampleJob}.newJob}, nil
	},
	Actions: []page.Action{{Path: "new-job", Scope: access.JobsWrite, Show: editJob}},
}

const exampleJob = `id: hello
image: "exec:/bin/echo"
command: [hello]
schedule: "30 2 * * *"
timeZone: Europe/Berlin
`

// versionsShown is the number of earlier versions that the page links to.
const versionsShown = 20

// documentData is the content of the page.
type documentData struct {
	Head    jobHead
	Version contract.JobVersion
	Current int64
	Lines   []documentLine
	// Changes are those from the shown version to the current one, or those of the current one.
	Changes  []job.Change
	Since    int64
	Versions []int64
	Edit     edit
}

// documentLine is a line of a document. Problems are those of the API at the line.
type documentLine struct {
	Number   int
	Text     string
	Problems []string
}

// edit is a document in the form, and the result of its check.
type edit struct {
	Text string
	// Tag is the entity tag of the job that the form is about.
	Tag string
	// Checked: the API accepts the document. Changes are those that it would make.
	Checked  bool
	Changes  []job.Change
	Warnings []string
	// Refused is the reason of the API, and Lines the document with the problems at their lines.
	Refused string
	Lines   []documentLine
	// Elsewhere are problems without a line.
	Elsewhere []string
}

// ReadJob reads a job with its entity tag.
func ReadJob(v *page.Visit, id string) (j api.JobAnswer, tag string, err error) {
	response, err := v.Call(http.MethodGet, "/v1/jobs/"+url.PathEscape(id), nil, nil, nil)
	if err != nil {
		return j, "", err
	}
	return j, response.Header.Get("ETag"), page.Read(response, &j)
}

func showDocument(v *page.Visit) (page.View, error) {
	data, err := readDocument(v)
	if err != nil {
		return page.View{}, err
	}
	shown := page.View{
		Title: data.Head.ID + " · document", JSON: "/v1/jobs/" + url.PathEscape(data.Head.ID),
		Command: ui.Command("jobs", "show", data.Head.ID), Content: data.content,
	}
	if n := data.Version.Version; n != data.Current {
		shown.JSON += "/versions/" + strconv.FormatInt(n, 10)
		shown.Command = ui.Command("jobs", "show", data.Head.ID, "--version", strconv.FormatInt(n, 10))
	}
	return shown, nil
}

// readDocument reads the current document of a job and the version in the query.
func readDocument(v *page.Visit) (data documentData, err error) {
	j, tag, err := ReadJob(v, v.Request.PathValue("job_id"))
	if err != nil {
		return data, err
	}
	data.Head, data.Version, data.Current = headOf(j, "document"), j.JobVersion, j.Version
	definition := j.Definition
	asked := v.Request.URL.Query().Get("version")
	if asked == "" && j.Version > 1 {
		asked = strconv.FormatInt(j.Version-1, 10)
	}
	data.Since = j.Version - 1
	if asked != "" {
		var old api.JobVersionAnswer
		err := v.Get("/v1/jobs/"+url.PathEscape(j.ID)+"/versions/"+url.PathEscape(asked), nil, &old)
		p, ok := errors.AsType[*httpkit.Problem](err)
		gone := ok && p.Body.Status == http.StatusNotFound && v.Request.URL.Query().Get("version") == ""
		if err != nil && !gone {
			return data, err
		}
		if !gone {
			if data.Changes, err = job.Diff(old.Definition, j.Definition); err != nil {
				return data, err
			}
		}
		if v.Request.URL.Query().Get("version") != "" {
			data.Version, data.Since, definition = old.JobVersion, old.Version, old.Definition
		}
	}
	for n := j.Version; n >= max(1, j.Version-versionsShown); n-- {
		data.Versions = append(data.Versions, n)
	}
	text, err := documentText(definition)
	if err != nil {
		return data, err
	}
	data.Lines, data.Edit.Text, data.Edit.Tag = linesOf(text, nil), text, tag
	return data, nil
}

// documentText returns a definition as YAML. With characters that would be invisible or would
// change the direction of others, it is JSON, which has an escape for them.
func documentText(d job.Definition) (string, error) {
	text, err := d.Canonical()
	if err != nil {
		return "", err
	}
	plain, err := yaml.JSONToYAML(text)
	if err == nil && !strings.ContainsFunc(string(plain), hidden) {
		return string(plain), nil
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, text, "", "  "); err != nil {
		return "", fmt.Errorf("cannot write the definition: %w", err)
	}
	var b strings.Builder
	for _, c := range pretty.String() {
		if !hidden(c) {
			b.WriteRune(c)
			continue
		}
		if c > 0xffff {
			c -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+c>>10, 0xdc00+c&0x3ff)
			continue
		}
		fmt.Fprintf(&b, `\u%04x`, c)
	}
	return b.String() + "\n", nil
}

// hidden reports whether a page shows a mark in place of the character.
func hidden(c rune) bool {
	return c != '\n' && c != '\t' && (unicode.Is(unicode.Cc, c) || unicode.Is(unicode.Cf, c) || c == '\u2028' || c == '\u2029')
}

// linesOf returns the lines of a document, each with its problems.
func linesOf(text string, problems []contract.FieldProblem) (found []documentLine) {
	for n, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		shown := documentLine{Number: n + 1, Text: ui.Visible(line)}
		for _, p := range problems {
			if p.Line == n+1 {
				shown.Problems = append(shown.Problems, problemText(p))
			}
		}
		found = append(found, shown)
	}
	return found
}

func problemText(p contract.FieldProblem) string {
	if p.Field == "" {
		return ui.Visible(p.Problem)
	}
	return ui.Visible(p.Field + ": " + p.Problem)
}

// editJob checks the document of a form, or stores it. A refused document stays in the form.
func editJob(v *page.Visit) (name string, shown page.View, err error) {
	id := v.Request.PathValue("job_id")
	name, shown.Title = "new-job", "New job"
	data, before := documentData{}, job.Definition{}
	if id != "" {
		if data, err = readDocument(v); err != nil {
			return "", page.View{}, err
		}
		j, _, err := ReadJob(v, id)
		if err != nil {
			return "", page.View{}, err
		}
		name, shown.Title, before = "job-document", id+" · document", j.Definition
	}
	e := edit{Text: FormText(v.Request.PostForm.Get("document")), Tag: v.Request.PostForm.Get("tag")}
	err = putJob(v, id, before, &e, v.Request.PostForm.Get("step") == "apply")
	if p, ok := errors.AsType[*httpkit.Problem](err); ok && p.Body.Status < http.StatusInternalServerError {
		e.refuse(p.Body)
	} else if err != nil {
		return "", page.View{}, err
	}
	data.Edit, shown.Content = e, e.newJob
	if id != "" {
		shown.Content = data.content
	}
	if e.Refused != "" {
		shown.Status = http.StatusUnprocessableEntity
	}
	return name, shown, nil
}

// refuse stores the problem of a refusal, with its parts at their lines.
func (e *edit) refuse(p contract.Problem) {
	e.Refused = p.Detail
	if len(p.Problems) == 0 {
		return
	}
	e.Refused = fmt.Sprintf("%d problems", len(p.Problems))
	if len(p.Problems) == 1 {
		e.Refused = "1 problem"
	}
	e.Lines = linesOf(e.Text, p.Problems)
	for _, each := range p.Problems {
		if each.Line < 1 || each.Line > len(e.Lines) {
			e.Elsewhere = append(e.Elsewhere, problemText(each))
		}
	}
}

// putJob checks a document, or stores it and redirects to its job. An empty id means a new job
// with the id of the document.
func putJob(v *page.Visit, id string, before job.Definition, e *edit, apply bool) error {
	kind, header := httpkit.TypeYAML, http.Header{}
	if json.Valid([]byte(e.Text)) {
		kind = httpkit.TypeJSON
	}
	if e.Tag != "" {
		header.Set("If-Match", e.Tag)
	}
	if id == "" {
		d, problems := job.Parse([]byte(e.Text), nil)
		if id = d.ID; id == "" {
			return missingID(problems)
		}
		header.Set("If-None-Match", "*")
	}
	query := url.Values{}
	if !apply {
		query.Set("dryRun", "true")
	}
	response, err := v.Call(http.MethodPut, "/v1/jobs/"+url.PathEscape(id), query, page.Document{Type: kind, Text: []byte(e.Text)}, header)
	if err != nil {
		return err
	}
	warnings := httpkit.Warnings(response.Header)
	var stored api.JobAnswer
	if err := page.Read(response, &stored); err != nil {
		return err
	}
	if apply {
		return page.SeeOther(ui.JobPath(id) + "/document?done=job-applied")
	}
	e.Checked, e.Warnings = true, warnings
	e.Changes, err = job.Diff(before, stored.Definition)
	return err
}

// missingID returns the problem of a document from which no id could be read.
func missingID(found []job.Problem) error {
	p := httpkit.ProblemOf(fault.Invalid("id", "missing id of the job"))
	for _, each := range found {
		p.Body.Problems = append(p.Body.Problems, contract.FieldProblem{Field: each.Field, Line: each.Line, Problem: each.Problem})
	}
	return p
}

package console

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/functions/console/jobs"
	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	labels "github.com/sortie-dev/sortie/shared/domain/label"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// rerunPage has the form for a new run with parts of an ended run changed. It shows the changes
// before it sends them.
var rerunPage = page.Page{
	Name: "rerun", Path: "runs/{run_id}/changes", Scope: access.RunsWrite, Show: showRerun,
	Actions: []page.Action{{Path: "runs/{run_id}/changes", Scope: access.RunsWrite, Show: rerunChanged}},
}

// rerunData is the content of the page.
type rerunData struct {
	contract.Task
	What  string
	Ended bool
	// The values of the form. Image and Command are for a program without a job, Options for an
	// export without a job. Command has an argument on each line.
	NewImage, Command string
	HasCommand        bool
	Parameters        []jobs.Parameter
	More              string
	NewOptions        contract.ExportOptions
	NewPriority       string
	// NewInputs are the values of the inputs of the run.
	NewInputs map[string]string
	NewLabels string
	// Downstream also reruns the jobs that come after the job of the run.
	Downstream bool
	Key        string
	// Changes are those of the form. Checked: they are shown, and their digest is Shown.
	Changes []job.Change
	Checked bool
	Shown   string
	// Refused is why the API has refused the changes.
	Refused string
	request contract.RetryRequest
}

func showRerun(v *page.Visit) (page.View, error) {
	data, err := readRerun(v)
	if err != nil {
		return page.View{}, err
	}
	return data.view(), nil
}

func (d rerunData) view() page.View {
	shown := page.View{Title: "Rerun with changes · " + d.RunID, JSON: "/v1/runs/" + url.PathEscape(d.RunID), Command: d.command(), Content: d.content}
	if d.Refused != "" {
		shown.Status = http.StatusUnprocessableEntity
	}
	return shown
}

// command returns the command with the same changes; empty for changes that the command line lacks.
func (d rerunData) command() string {
	arguments := []string{"retry", d.RunID}
	if d.request.Command != nil || d.request.Options != nil {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(d.request.Parameters)) {
		arguments = append(arguments, "--param", name+"="+d.request.Parameters[name])
	}
	for _, text := range labels.Change(d.request.Labels).Texts() {
		arguments = append(arguments, "--label", text)
	}
	for _, name := range slices.Sorted(maps.Keys(d.request.Inputs)) {
		arguments = append(arguments, "--input", name+"="+jobs.InputText(d.request.Inputs[name]))
	}
	for _, flag := range [][2]string{{"--image", d.request.Image}, {"--priority", d.request.Priority}} {
		if flag[1] != "" {
			arguments = append(arguments, flag[0], flag[1])
		}
	}
	if d.request.Downstream {
		arguments = append(arguments, "--downstream")
	}
	return ui.Command(arguments...)
}

// readRerun reads the run in the path as the values of the form.
func readRerun(v *page.Visit) (d rerunData, err error) {
	if err := v.Get("/v1/runs/"+url.PathEscape(v.Request.PathValue("run_id")), nil, &d.Task); err != nil {
		return d, err
	}
	if d.Inference != nil {
		return d, fault.Invalid("", "a run of inference has no parts to change; send another task")
	}
	d.What, _ = page.WhatOf(d.Task)
	d.Ended, d.Key = run.State(d.State).Terminal(), v.FormKey(d.RunID)
	d.NewPriority, d.NewInputs = d.priority(), map[string]string{}
	for name, value := range d.Inputs {
		d.NewInputs[name] = jobs.InputText(value)
	}
	if p := d.Program; p != nil {
		d.NewImage, d.Command = p.Image, strings.Join(p.Command, "\n")
		d.HasCommand = d.JobID == "" && !slices.ContainsFunc(p.Command, func(argument string) bool { return !jobs.Fits(argument) || strings.Contains(argument, "\n") })
		for _, name := range slices.Sorted(maps.Keys(p.Env)) {
			d.Parameters = append(d.Parameters, jobs.ParameterOf(name, p.Env[name].Value, p.Env[name].SecretRef))
		}
	} else if err := json.Unmarshal(d.Options, &d.NewOptions); err != nil {
		return d, fmt.Errorf("cannot read the options of a run: %w", err)
	}
	return d, nil
}

// priority returns the priority of the old run.
func (d rerunData) priority() string { return cmp.Or(d.Priority, string(spec.PriorityNormal)) }

// rerunChanged shows the changes of a form. If the form has shown them before, it starts the run.
func rerunChanged(v *page.Visit) (string, page.View, error) {
	d, err := readRerun(v)
	if err != nil {
		return "", page.View{}, err
	}
	form := v.Request.PostForm
	d.Key = cmp.Or(form.Get("key"), d.Key)
	request, err := d.take(form)
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		d.Refused = f.Message
	} else if err != nil {
		return "", page.View{}, err
	}
	text, err := json.Marshal(request)
	if err != nil {
		return "", page.View{}, fmt.Errorf("cannot encode the changes of a run: %w", err)
	}
	d.Checked, d.Shown, d.request = d.Refused == "", digestOf(text), request
	if d.Checked && form.Get("step") == "start" && form.Get("shown") == d.Shown {
		err := startChanged(v, d, request)
		p := page.ProblemOf(err)
		if p == nil || p.Body.Status >= http.StatusInternalServerError || p.Body.Status == http.StatusForbidden {
			return "", page.View{}, err
		}
		d.Checked, d.Refused = false, strings.TrimPrefix(p.Body.Field+": "+p.Body.Detail, ": ")
	}
	return "rerun", d.view(), nil
}

// startChanged starts the new run and redirects to it.
func startChanged(v *page.Visit, d rerunData, request contract.RetryRequest) error {
	response, err := v.Call(http.MethodPost, "/v1/runs/"+url.PathEscape(d.RunID)+"/retry", nil, request, http.Header{"Idempotency-Key": {d.Key + "-" + d.Shown}})
	if err != nil {
		return err
	}
	var accepted contract.RetryAccepted
	if err := page.Read(response, &accepted); err != nil {
		return err
	}
	return page.SeeOther(ui.RunPath(accepted.TaskID) + "?done=changed")
}

// take takes the values of a form. It returns the changes as the API takes them.
func (d *rerunData) take(form url.Values) (request contract.RetryRequest, err error) {
	for name, values := range form {
		if text := jobs.FormText(values[0]); ui.Visible(text) != text {
			return request, fault.Invalid(name, "a character in %s that no page shows; use the API", ui.Short(60, name))
		}
	}
	d.More = jobs.FormText(form.Get("more"))
	if d.Program != nil {
		request.Parameters = map[string]string{}
		if err = jobs.AddParameters(request.Parameters, form); err != nil {
			return request, err
		}
		for name, value := range request.Parameters {
			d.change("environment "+name, d.Program.Env[name].Value, value)
		}
		for i := range d.Parameters {
			p := &d.Parameters[i]
			if value, ok := form["parameter."+p.Name]; ok {
				p.Value = jobs.FormText(value[0])
			}
		}
	}
	if d.Program != nil && d.JobID == "" {
		d.NewImage = strings.TrimSpace(form.Get("image"))
		if d.change("image", d.Program.Image, d.NewImage) {
			request.Image = d.NewImage
		}
	}
	if before := d.Command; d.HasCommand {
		d.Command = jobs.FormText(form.Get("command"))
		if d.change("command", before, d.Command) {
			if request.Command = strings.Split(d.Command, "\n"); d.Command == "" {
				request.Command = []string{}
			}
		}
	}
	if d.Program == nil && d.JobID == "" {
		if err := d.takeOptions(form, &request); err != nil {
			return request, err
		}
	}
	if err := d.takeInputs(form, &request); err != nil {
		return request, err
	}
	d.NewPriority = cmp.Or(form.Get("priority"), d.priority())
	if d.change("priority", d.priority(), d.NewPriority) {
		request.Priority = d.NewPriority
	}
	if d.Downstream = d.JobID != "" && form.Get("downstream") != ""; d.Downstream {
		request.Downstream = d.change("jobs after it", "as they are", "rerun")
	}
	d.NewLabels = strings.TrimSpace(form.Get("labels"))
	if request.Labels, err = jobs.FormLabels(form); err != nil {
		return request, err
	}
	d.change("labels", labels.Text(d.Labels), labels.Text(labels.Change(request.Labels).Apply(d.Labels)))
	slices.SortFunc(d.Changes, func(a, b job.Change) int { return strings.Compare(a.Field, b.Field) })
	return request, nil
}

// takeInputs takes the values of the inputs of the run that the form has.
func (d *rerunData) takeInputs(form url.Values, request *contract.RetryRequest) error {
	given, err := jobs.FormInputs(form)
	if err != nil {
		return err
	}
	for name, before := range d.Inputs {
		if after, ok := given[name]; ok && d.change("input "+name, jobs.InputText(before), jobs.InputText(after)) {
			if request.Inputs == nil {
				request.Inputs = map[string]json.RawMessage{}
			}
			request.Inputs[name] = after
			d.NewInputs[name] = jobs.InputText(after)
		}
	}
	return nil
}

// takeOptions takes the options of an export.
func (d *rerunData) takeOptions(form url.Values, request *contract.RetryRequest) error {
	o, changed := &d.NewOptions, false
	for name, to := range map[string]**int{"maxDepth": &o.MaxDepth, "parallelBatchSize": &o.ParallelBatchSize} {
		n, err := strconv.Atoi(form.Get(name))
		if err != nil {
			return fault.Invalid(name, "malformed number of %s", name)
		}
		changed = d.change(name, shown(*to), form.Get(name)) || changed
		*to = &n
	}
	for name, to := range map[string]**bool{"recursive": &o.Recursive, "includeOcr": &o.IncludeOCR} {
		changed = d.change(name, shown(*to), form.Get(name)) || changed
		*to = new(form.Get(name) == "true")
	}
	mode := form.Get("cheimarrosMode")
	changed = d.change("cheimarrosMode", shown(o.CheimarrosMode), mode) || changed
	if o.CheimarrosMode = &mode; changed {
		request.Options = o
	}
	return nil
}

// shown returns a value as a text; empty for nil.
func shown[T any](value *T) string {
	if value == nil {
		return ""
	}
	return ui.Plain(*value)
}

// change adds a change, and reports whether there is one.
func (d *rerunData) change(field, before, after string) bool {
	if before == after {
		return false
	}
	d.Changes = append(d.Changes, job.Change{Field: field, Before: before, After: after})
	return true
}

// digestOf returns a short digest of a text.
func digestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

package importer

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

var (
	expression = regexp.MustCompile(`\$\{\{.*?\}\}`)
	// provided matches variables that the runner of GitHub Actions provides.
	provided = regexp.MustCompile(`\b(?:GITHUB|RUNNER)_[A-Z_]+\b`)
	notKey   = regexp.MustCompile(`[^A-Za-z0-9._:-]+`)
)

// workflow is a workflow that is converted.
type workflow struct {
	root *node
	id   string
	jobs []member
	// crons are the schedules of each time zone, in the order of zones.
	zones []string
	crons map[string][]string
	notes []*Error
	// inputs are those of workflow_dispatch by name. lost are those without a counterpart.
	inputs map[string]job.Input
	lost   []string
}

// github converts each job of a workflow, for each time zone of the schedules.
func github(s Source) (jobs []Job, notes []*Error, problem *Error) {
	documents, first, problem := readYAML(s.Text)
	if problem != nil {
		return nil, nil, problem
	}
	w := &workflow{root: documents[0]}
	w.jobs = w.root.get("jobs").all(kindObject)
	file := path.Base(s.Name)
	w.id = ID(cmp.Or(w.root.get("name").str(), strings.TrimSuffix(file, path.Ext(file))))
	w.triggers()
	converted, ids := map[string]Job{}, map[string]string{}
	for _, m := range w.jobs {
		if j, ok := w.job(m); ok {
			converted[m.name], ids[m.name] = j, j.Definition.ID
		}
	}
	for _, m := range w.jobs {
		j, ok := converted[m.name]
		if !ok || *first != nil {
			continue
		}
		j.after(m.value, ids, len(w.zones) == 1)
		j.Lost = append(append(j.Lost, m.value.unread()...), w.rest()...)
		for _, zone := range w.zones {
			again := j
			again.Lost, again.Definition.Env = slices.Clone(j.Lost), maps.Clone(j.Definition.Env)
			for _, cron := range w.crons[zone] {
				if len(again.Definition.After) > 0 {
					break // it starts after jobs with the schedule
				}
				again.schedule(cron, zone, false)
			}
			w.declare(&again)
			jobs = append(jobs, again)
		}
	}
	switch {
	case *first != nil:
		return nil, nil, *first
	case len(w.jobs) == 0:
		return nil, nil, wrong(w.root.line, "no jobs, want a workflow")
	case len(jobs) == 0:
		return nil, nil, w.notes[0]
	}
	return jobs, w.notes, nil
}

// triggers reads the schedules, and the inputs of workflow_dispatch. Every job can be run on
// request.
func (w *workflow) triggers() {
	w.crons = map[string][]string{}
	on := w.root.get("on")
	if on != nil && on.kind == kindObject {
		w.dispatch(on.get("workflow_dispatch"))
		for _, m := range on.get("schedule").all(kindList) {
			zone := m.value.get("timezone").str()
			if w.crons[zone] == nil {
				w.zones = append(w.zones, zone)
			}
			w.crons[zone] = append(w.crons[zone], m.value.get("cron").str())
		}
	} else if on != nil {
		on.seen = on.is("workflow_dispatch")
	}
	if len(w.zones) == 0 {
		w.zones = []string{""}
	}
}

// rest returns the fields of the workflow outside of its jobs without a counterpart.
func (w *workflow) rest() (lost []string) {
	lost = slices.Clone(w.lost)
	for _, m := range w.root.members {
		if m.name != "jobs" {
			lost = append(lost, m.value.unread()...)
		}
	}
	return lost
}

// job converts the steps with scripts. ok is false for a job without such a step.
func (w *workflow) job(m member) (j Job, ok bool) {
	n := m.value
	j = Job{line: n.line, Definition: job.Definition{ID: w.id, Image: "exec:/bin/bash", RetryConfig: &job.RetryConfig{MaxRetries: new(0)}}}
	d := &j.Definition
	if len(w.jobs) > 1 {
		d.ID = ID(w.id[:min(len(w.id), maxID/2)] + "-" + m.name)
	}
	name := cmp.Or(n.get("name").str(), w.root.get("name").str())
	if d.Name = limit.Cut(display.Clean(name), limit.FileName); expression.MatchString(name) {
		d.Name = ""
		j.lose("%s: %s", n.get("name").path, name)
	}
	shell := cmp.Or(n.get("defaults", "run", "shell").str(), w.root.get("defaults", "run", "shell").str())
	j.matrix(n.get("strategy"))
	container, exports := n.get("container"), map[string]string{}
	if container != nil {
		image := container
		if container.kind == kindObject {
			image = container.get("image")
			j.environment(w, container.get("env"), exports)
		}
		if d.Image = image.str(); expression.MatchString(d.Image) {
			w.notes = append(w.notes, wrong(n.line, "%s: %s: an image with an expression has no counterpart, and the job is left out", image.path, shown(d.Image)))
			return j, false
		}
		shell = cmp.Or(shell, "sh")
	} else if strings.Contains(n.get("runs-on").value(), "windows") {
		shell = cmp.Or(shell, "pwsh")
	}
	if container == nil && n.get("runs-on") != nil {
		n.get("runs-on").seen = false
	}
	j.environment(w, w.root.get("env"), exports)
	j.environment(w, n.get("env"), exports)
	folder := cmp.Or(n.get("defaults", "run", "working-directory").str(), w.root.get("defaults", "run", "working-directory").str())
	script, count := j.script(w, n.get("steps"), shell, folder)
	if count == 0 {
		w.notes = append(w.notes, wrong(n.line, "%s: no step that a shell can run, and left out", n.path))
		return j, false
	}
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(exports))) {
		script = "export " + name + "=" + exports[name] + "\n" + script
	}
	d.Command = []string{"-e", "-c", script}
	if container != nil {
		d.Command = slices.Concat([]string{strings.Fields(shell)[0]}, d.Command)
	}
	if minutes := n.get("timeout-minutes").number(); minutes != nil {
		j.allow(*minutes * 60)
	}
	if own := n.get("concurrency"); own != nil {
		j.concurrency(own, w, "")
	} else { // it limits the workflow, whose jobs are jobs of their own here
		j.concurrency(w.root.get("concurrency"), w, "-"+m.name)
	}
	return j, true
}

// after converts the jobs that a job needs, if all of them have an id. possible is false if the jobs
// exist several times.
func (j *Job) after(n *node, ids map[string]string, possible bool) {
	needs := n.get("needs")
	if needs == nil {
		return
	}
	names := needs.strs()
	possible = possible && len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return ids[name] == "" })
	if needs.seen = possible; !possible {
		return
	}
	when, condition := run.When(""), n.get("if")
	switch meaning := status(condition); {
	case condition == nil || meaning == "success()":
	case meaning == "failure()":
		if when = run.WhenFailure; len(names) > 1 {
			j.lose("%s: the failure of one of these jobs is enough; here all must fail", condition.path)
		}
	case meaning == "always()" || meaning == "!cancelled()":
		when = run.WhenAlways
	default:
		condition.seen = false
	}
	for _, name := range names {
		j.Definition.After = append(j.Definition.After, job.Dependency{Job: ids[name], When: when})
	}
}

// status returns a condition without the braces and spaces of an expression.
func status(condition *node) string {
	if condition == nil || condition.kind != kindScalar {
		return ""
	}
	text := strings.TrimSpace(condition.text)
	if inner, ok := strings.CutPrefix(text, "${{"); ok && strings.HasSuffix(inner, "}}") {
		text = strings.TrimSuffix(inner, "}}")
	}
	return strings.ReplaceAll(strings.TrimSpace(text), " ", "")
}

// environment adds variables. Those with inputs are exports of the script, by name; those with
// other expressions are lost.
func (j *Job) environment(w *workflow, n *node, exports map[string]string) {
	if n == nil || n.kind == kindScalar {
		return
	}
	for _, m := range n.all(kindObject) {
		text := m.value.str()
		word, ok := w.word(text, j.Definition.Matrix)
		switch {
		case !expression.MatchString(text):
			j.variable(m.name, text)
			delete(exports, m.name)
		case ok && variableName.MatchString(m.name):
			exports[m.name] = word
		default:
			m.value.seen = false
		}
	}
}

// concurrency converts a group: one run is under way, and the newest of the others waits. The
// expression of the workflow's name is replaced; others are left out.
func (j *Job) concurrency(n *node, w *workflow, suffix string) {
	group := n
	if n != nil && n.kind == kindObject {
		group = n.get("group")
		if cancel := n.get("cancel-in-progress"); cancel != nil && !cancel.is("false") {
			cancel.seen = false
		}
	}
	text := group.str()
	key := strings.Trim(notKey.ReplaceAllString(expression.ReplaceAllStringFunc(text, func(found string) string {
		if strings.Trim(found, "${} ") == "github.workflow" {
			return w.id
		}
		j.lose("%s: %s is left out", group.path, shown(found))
		return ""
	}), "-"), "-")
	if key = strings.Trim(key+suffix, "-"); text != "" {
		j.Definition.ConcurrencyKey = key
		j.Definition.Concurrency = &job.Concurrency{QueueLimit: new(1), Overflow: spec.OverflowKeepNewest}
	}
}

// script returns one script of the steps, each in a subshell, because the folder and the
// variables of a step are not those of the next. count is the number of steps with a script.
func (j *Job) script(w *workflow, steps *node, shell, folder string) (script string, count int) {
	var text strings.Builder
	list := steps.all(kindList)
	for _, m := range list {
		body, ok := j.step(w, m.value, shell, folder)
		if m.value.seen = ok; ok {
			count++
		}
		if name := m.value.find("name").str(); name != "" {
			fmt.Fprintf(&text, "# %s\n", shown(name))
		}
		text.WriteString(body)
	}
	return text.String(), count
}

// step converts a step. One that a shell cannot run alone becomes a comment.
func (j *Job) step(w *workflow, n *node, shell, folder string) (body string, ok bool) {
	n.get("id")
	n.get("name")
	script, condition := n.get("run"), n.get("if")
	name, _, _ := strings.Cut(cmp.Or(n.get("shell").str(), shell, "bash"), " ")
	switch {
	case script == nil:
		return "# not converted: the action " + shown(n.get("uses").str()) + "\n", false
	case condition != nil && status(condition) != "always()" && status(condition) != "success()":
		return "# not converted: a step with a condition\n", false
	case name != "bash" && name != "sh":
		return "# not converted: a step in " + shown(name) + "\n", false
	}
	if status(condition) == "always()" { // not after a failure
		condition.seen = false
	}
	text := w.fill(script.str(), j.Definition.Matrix)
	for _, found := range slices.Compact(slices.Sorted(slices.Values(append(expression.FindAllString(text, -1), provided.FindAllString(text, -1)...)))) {
		j.lose("%s: %s is copied, not provided", script.path, shown(found))
	}
	lines := "(\n"
	if folder = cmp.Or(n.get("working-directory").str(), folder); folder != "" {
		word, ok := w.word(folder, j.Definition.Matrix)
		if !ok {
			j.lose("%s: the folder %s is copied, not evaluated", n.path, shown(folder))
			word = quoted(folder)
		}
		lines += "cd " + word + "\n"
	}
	for _, m := range n.get("env").all(kindObject) {
		if word, ok := w.word(m.value.str(), j.Definition.Matrix); !ok {
			m.value.seen = false
		} else if variableName.MatchString(m.name) {
			lines += "export " + m.name + "=" + word + "\n"
		}
	}
	lines += strings.TrimRight(text, "\n") + "\n)"
	if n.get("continue-on-error").is("true") {
		lines += " || true"
	}
	return lines + "\n", true
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// quoted returns a text as one word of a shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

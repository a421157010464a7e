package importer

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// kubernetes converts the CronJobs and Jobs of a manifest with several documents and lists.
func kubernetes(s Source) (jobs []Job, notes []*Error, problem *Error) {
	documents, first, problem := readYAML(s.Text)
	if problem != nil {
		return nil, nil, problem
	}
	var objects []*node
	for _, d := range documents {
		if kind := d.get("kind").str(); strings.HasSuffix(kind, "List") {
			for _, item := range d.get("items").all(kindList) {
				objects = append(objects, item.value)
			}
			continue
		}
		objects = append(objects, d)
	}
	for _, o := range objects {
		kind, version := o.get("kind").str(), o.get("apiVersion").str()
		if (kind == "CronJob" || kind == "Job") && strings.HasPrefix(version, "batch/") {
			jobs = append(jobs, manifest(o, first))
		} else {
			notes = append(notes, wrong(o.line, "%s is no job, and left out", shown(strings.TrimSpace(kind+" "+o.get("metadata", "name").str()))))
		}
		if *first != nil {
			return nil, nil, *first
		}
	}
	if len(jobs) == 0 {
		return nil, nil, wrong(documents[0].line, "kind %q: no job, want a CronJob or a Job of batch/v1", shown(documents[0].get("kind").str()))
	}
	return jobs, notes, nil
}

// manifest converts a CronJob or a Job.
func manifest(o *node, first **Error) Job {
	meta, spec := o.get("metadata"), o.get("spec")
	for _, name := range []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"} {
		meta.get(name).finish() // the API server sets it
	}
	o.get("status").finish()
	name := cmp.Or(meta.get("name").str(), meta.get("generateName").str())
	j := Job{line: o.line, Definition: job.Definition{ID: ID(name)}}
	if name != j.Definition.ID && name != "" {
		j.Definition.Name = name
	}
	work := spec
	if o.get("kind").is("CronJob") {
		work = spec.get("jobTemplate", "spec")
		j.cronJob(spec)
	} else if spec.get("suspend").is("true") {
		j.lose("spec.suspend: true: the job runs only on request")
	}
	spec.get("jobTemplate", "metadata", "creationTimestamp")
	work.get("template", "metadata", "creationTimestamp")
	j.labels(meta, spec.get("jobTemplate", "metadata"), work.get("template", "metadata"))
	j.attempts(work)
	j.pod(work.get("template", "spec"), first)
	j.Lost = append(j.Lost, o.unread()...)
	return j
}

// labels merges the labels of an object and of its templates.
func (j *Job) labels(metas ...*node) {
	labels := map[string]string{}
	for _, meta := range metas {
		for _, m := range meta.get("labels").all(kindObject) {
			value, twice := labels[m.name]
			if labels[m.name] = m.value.str(); twice && !m.value.is(value) {
				labels[m.name], m.value.seen = value, false
			}
		}
	}
	if len(labels) > 0 {
		j.Definition.Labels = labels
	}
}

// cronJob converts the schedule and the rules for overlapping and late runs.
func (j *Job) cronJob(fields *node) {
	d := &j.Definition
	j.schedule(fields.get("schedule").str(), fields.get("timeZone").str(), true)
	if n := fields.get("startingDeadlineSeconds").number(); n != nil {
		d.StartingDeadline = job.Duration(fmt.Sprintf("%ds", *n))
	}
	switch policy := fields.get("concurrencyPolicy"); {
	case policy.is("Forbid"):
		d.Constraints = &job.Constraints{MaxConcurrentRuns: new(1)}
	case policy.is("Replace"):
		d.Constraints = &job.Constraints{MaxConcurrentRuns: new(1)}
		d.Actions = &job.Actions{OnConstraintViolation: &job.Action{Type: spec.ActionKillOld}}
	}
	if fields.get("suspend").is("true") {
		j.loseSchedules("spec.suspend is true")
	}
}

// attempts converts the retries and the limits of a Job. The numbers are the defaults of
// Kubernetes: 6 retries, after 10 s and twice the time each, at most 6 minutes.
func (j *Job) attempts(spec *node) {
	retries := 6
	if n := spec.get("backoffLimit").number(); n != nil {
		retries = *n
	}
	config := &job.RetryConfig{MaxRetries: &retries}
	if retries > 0 {
		config.InitialDelay, config.BackoffMultiplier, config.MaxDelay = "10s", new(2.0), "6m"
	}
	j.Definition.RetryConfig = config
	deadline := spec.get("activeDeadlineSeconds")
	if n := deadline.number(); n != nil {
		j.Definition.Deadline = job.Duration(fmt.Sprintf("%ds", *n))
		j.lose("%s: it counts from the start of the Job, deadline also counts the wait in a queue", deadline.path)
	}
	for _, name := range []string{"completions", "parallelism"} {
		if n := spec.get(name); n != nil && !n.is("1") {
			n.seen = false
		}
	}
}

// allow limits the seconds of an attempt.
func (j *Job) allow(seconds int) {
	if j.Definition.Constraints == nil {
		j.Definition.Constraints = &job.Constraints{}
	}
	j.Definition.Constraints.MaxAllowedRunTime = job.Duration(fmt.Sprintf("%ds", seconds))
}

// pod converts the first container of a pod.
func (j *Job) pod(pod *node, first **Error) {
	pod.get("restartPolicy") // both values retry
	if n := pod.get("terminationGracePeriodSeconds").number(); n != nil {
		j.Definition.Policy = &job.Policy{CancelGraceSeconds: n}
	}
	if n := pod.get("activeDeadlineSeconds").number(); n != nil {
		j.allow(*n)
	}
	containers := pod.get("containers")
	if containers == nil || containers.kind != kindList || len(containers.members) == 0 {
		if *first == nil {
			*first = wrong(j.line, "spec.template.spec.containers: missing, want a list with a container")
		}
		return
	}
	c := containers.members[0].value
	c.seen = true
	c.get("name")
	j.Definition.Image = c.get("image").str()
	env := j.podEnv(c.get("env"))
	command := c.get("command")
	if command != nil {
		j.lose("%s: it replaces the entrypoint of the image there; here the entrypoint gets it as arguments", command.path)
	}
	for _, argument := range slices.Concat(command.strs(), c.get("args").strs()) {
		j.Definition.Command = append(j.Definition.Command, env.expand(j, c.path, argument))
	}
	j.podSize(c.get("resources"))
}

// podVariables has the variables of a container; nil values are unknown.
type podVariables map[string]*string

func (j *Job) podEnv(list *node) podVariables {
	env := podVariables{}
	for _, item := range list.all(kindList) {
		v := item.value
		name := v.get("name").str()
		env[name] = nil
		if from := v.get("valueFrom"); from != nil {
			from.finish()
			j.lose("%s.%s: %s", list.path, name, shown(from.value()))
			continue
		}
		value := env.expand(j, list.path+"."+name, v.get("value").str())
		env[name] = &value
		j.variable(name, value)
	}
	return env
}

// podReference matches what the kubelet expands in values and arguments.
var podReference = regexp.MustCompile(`\$(\$|\([A-Za-z_][A-Za-z0-9_.-]*\))`)

// expand replaces $(NAME) by the value of a variable, as the kubelet does. Other names stay.
func (v podVariables) expand(j *Job, path, text string) string {
	return podReference.ReplaceAllStringFunc(text, func(found string) string {
		if found == "$$" {
			return "$"
		}
		value, known := v[strings.Trim(found, "$()")]
		if value != nil {
			return *value
		}
		if known {
			j.lose("%s: %s is not expanded, because its value is unknown", path, found)
		}
		return found
	})
}

// memoryStep is the unit of memory sizes in MiB.
const memoryStep = 256

// podSize converts the limits of a container, or else its requests.
func (j *Job) podSize(resources *node) {
	size := &job.Resources{}
	for _, each := range []struct {
		name string
		unit int64
		step int64
		to   **int
	}{{"cpu", 1, 1, &size.CPUs}, {"memory", 1 << 20, memoryStep, &size.MemoryMB}} {
		n := resources.get("limits").get(each.name)
		if n == nil {
			n = resources.get("requests").get(each.name)
		}
		if n == nil {
			continue
		}
		quantity, err := resource.ParseQuantity(n.str())
		if err != nil {
			n.fail("%q, want a quantity such as 500m or 1Gi", shown(n.text))
			return
		}
		step := each.unit * each.step
		rounded := (quantity.Value() + step - 1) / step * each.step
		if quantity.CmpInt64(rounded*each.unit) != 0 {
			j.lose("%s: %s, rounded up to %d", n.path, n.text, rounded)
		}
		*each.to = new(int(rounded))
	}
	if size.CPUs != nil || size.MemoryMB != nil {
		j.Definition.Resources = size
	}
}

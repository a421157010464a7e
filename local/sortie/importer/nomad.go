package importer

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/job"
)

// nomad converts a batch job.
func nomad(s Source) (jobs []Job, notes []*Error, problem *Error) {
	if bytes.HasPrefix(bytes.TrimSpace(s.Text), []byte("{")) {
		return nil, nil, wrong(1, "JSON, want HCL, as of: nomad job inspect -hcl JOB")
	}
	root, first, problem := readHCL(s.Name, s.Text)
	if problem != nil {
		return nil, nil, problem
	}
	named := root.get("job").all(kindObject)
	if *first == nil && len(named) != 1 {
		return nil, nil, wrong(1, "%d blocks job, want one", len(named))
	}
	if *first == nil {
		jobs = []Job{nomadJob(named[0].name, named[0].value)}
	}
	if *first != nil {
		return nil, nil, *first
	}
	return jobs, nil, nil
}

func nomadJob(name string, n *node) Job {
	switch kind := n.get("type"); {
	case kind.is("batch"):
	case kind.is("sysbatch"):
		kind.seen = false
	case kind == nil:
		n.fail(`a service, which is the default of type, want type = "batch"`)
	default:
		kind.fail(`%q, want "batch"`, shown(kind.text))
	}
	j := Job{line: n.line, Definition: job.Definition{ID: ID(name)}}
	if name != j.Definition.ID {
		j.Definition.Name = name
	}
	periodic := n.get("periodic")
	if periodic.get("prohibit_overlap").is("true") {
		j.Definition.Constraints = &job.Constraints{MaxConcurrentRuns: new(1)}
	}
	group := chosen(n.get("group"))
	if group == nil {
		group = n
	}
	task := chosen(group.get("task"))
	if task == nil {
		n.fail("no task, want one")
		return j
	}
	j.task(task)
	j.restart(task.get("restart"), group.get("restart"))
	if count := group.get("count"); count != nil && !count.is("1") {
		count.seen = false
	}
	zone := periodic.get("time_zone").str()
	for _, cron := range append(periodic.get("cron").strs(), periodic.get("crons").strs()...) {
		j.schedule(nomadCron(cron), zone, true)
	}
	if periodic.get("enabled").is("false") {
		j.loseSchedules("periodic.enabled is false")
	}
	j.Lost = append(j.Lost, n.unread()...)
	return j
}

// chosen returns the first block that is no lifecycle task, and marks it as read.
func chosen(blocks *node) *node {
	if blocks == nil || blocks.kind != kindObject {
		return nil
	}
	for _, m := range blocks.members {
		if !slices.ContainsFunc(m.value.members, func(part member) bool { return part.name == "lifecycle" }) {
			m.value.seen = true
			return m.value
		}
	}
	return nil
}

// nomadCron removes the year, which follows five fields, or six with the second.
func nomadCron(text string) string {
	fields := strings.Fields(text)
	switch n := len(fields); {
	case n > 5 && fields[n-1] == "*":
		fields = fields[:n-1]
	case n == 6: // refused, because it has seven fields
		fields = append([]string{"0"}, fields...)
	}
	return strings.Join(fields, " ")
}

// task converts the program of a task.
func (j *Job) task(n *node) {
	d, config := &j.Definition, n.get("config")
	command, args := config.get("command").str(), config.get("args").strs()
	switch driver := n.get("driver"); {
	case driver.is("docker"), driver.is("podman"):
		d.Image, d.Command = config.get("image").str(), args
		if command != "" {
			d.Command = append([]string{command}, args...)
		}
	case driver.is("exec"), driver.is("raw_exec"), driver.is("exec2"):
		driver.seen = driver.is("raw_exec")
		if d.Image, d.Command = "exec:"+command, args; !path.IsAbs(command) {
			d.Image, d.Command = "exec:/usr/bin/env", append([]string{command}, args...)
		}
		if command == "" {
			n.fail("no config.command, want a program")
		}
	default:
		n.fail("driver %q, want docker, podman, exec or raw_exec", shown(driver.str()))
	}
	for _, v := range n.get("env").all(kindObject) {
		j.variable(v.name, v.value.str())
	}
	if seconds := n.get("kill_timeout").seconds(); seconds > 0 {
		d.Policy = &job.Policy{CancelGraceSeconds: &seconds}
	}
	size := &job.Resources{CPUs: n.get("resources", "cores").number()}
	if memory := n.get("resources", "memory"); memory.number() != nil {
		rounded := (*memory.number() + memoryStep - 1) / memoryStep * memoryStep
		if size.MemoryMB = &rounded; !memory.is(fmt.Sprint(rounded)) {
			j.lose("%s: %s, rounded up to %d", memory.path, memory.text, rounded)
		}
	}
	if size.CPUs != nil || size.MemoryMB != nil {
		d.Resources = size
	}
}

// restart converts the retries of a task. The defaults are those of Nomad for batch jobs.
func (j *Job) restart(blocks ...*node) {
	retries, delay := 3, 15
	for _, n := range slices.Backward(blocks) {
		if attempts := n.get("attempts").number(); attempts != nil {
			retries = *attempts
		}
		if seconds := n.get("delay").seconds(); seconds > 0 {
			delay = seconds
		}
		if mode := n.get("mode"); mode.is("delay") {
			mode.seen = false
		}
	}
	j.Definition.RetryConfig = &job.RetryConfig{MaxRetries: &retries}
	if retries > 0 {
		j.Definition.RetryConfig.InitialDelay, j.Definition.RetryConfig.BackoffMultiplier = job.Duration(fmt.Sprintf("%ds", delay)), new(1.0)
	}
}

// seconds returns a duration in whole seconds, rounded up; 0 if it is absent.
func (n *node) seconds() int {
	text := n.str()
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil && !n.source {
		n.fail("%q, want a duration such as 30s", shown(text))
	}
	return int((d + time.Second - 1) / time.Second)
}

package command

import (
	"errors"

	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/jobfile"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// override replaces the fields of a definition for which flags are given. changed reports whether
// a flag is.
func (f runFlags) override(d *job.Definition, changed func(flag string) bool) {
	if f.file == "" || changed("retries") {
		retry := job.RetryConfig{}
		if d.RetryConfig != nil {
			retry = *d.RetryConfig
		}
		retry.MaxRetries, d.RetryConfig = &f.retries, &retry
	}
	if changed("timeout") {
		limited := job.Constraints{}
		if d.Constraints != nil {
			limited = *d.Constraints
		}
		limited.MaxAllowedRunTime, d.Constraints = job.Duration(f.timeout.String()), &limited
		if d.Policy != nil { // which has the same limit
			policy := *d.Policy
			policy.TimeLimitSeconds, d.Policy = nil, &policy
		}
	}
	if changed("priority") {
		d.Priority = spec.Priority(f.priority)
	}
	if changed("concurrency-key") {
		d.ConcurrencyKey = f.concurrencyKey
	}
}

// fieldFlags are the flags of a run by the fields that they set.
var fieldFlags = map[string]string{
	"constraints.maxAllowedRunTime": "timeout", "retryConfig.maxRetries": "retries", "priority": "priority",
	"concurrencyKey": "concurrency-key", "output.path": "output-path",
}

// byFlags explains the problems of a definition in a server's error. It names the flag in place of
// a field that the flag sets.
func byFlags(err error, changed func(flag string) bool) error {
	p, ok := errors.AsType[*client.Problem](err)
	if !ok {
		return err
	}
	for i, each := range p.Problems {
		if flag := fieldFlags[each.Field]; flag != "" && changed(flag) {
			p.Problems[i].Field = "--" + flag
		}
	}
	return jobfile.File{}.Explained(err)
}

package api

import (
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// policyFields maps the fields of spec.Policy to those of contract.Policy.
var policyFields = map[string]string{
	"timeLimit": "timeLimitSeconds", "startTimeout": "startTimeoutSeconds",
	"heartbeatInterval": "heartbeatIntervalSeconds", "heartbeatTimeout": "heartbeatTimeoutSeconds",
	"cancelGrace": "cancelGraceSeconds", "deadline": "deadlineSeconds", "retry.maxAttempts": "retry.maxAttempts",
	"retry.initialDelay": "retry.initialDelaySeconds", "retry.maxDelay": "retry.maxDelaySeconds",
	"retry.multiplier": "retry.multiplier", "retry.jitter": "retry.jitter", "retry.categories": "retry.categories",
}

// policyFrom returns the policy of a request: the defaults, overridden by the request. The
// fault names the field of the request.
func policyFrom(defaults spec.Policy, asked *contract.Policy) (spec.Policy, error) {
	p := defaults
	if asked == nil {
		return p, nil
	}
	given := spec.Given{RecordRetention: true, InitialDelay: true, MaxDelay: true}
	set(&p.TimeLimit, asked.TimeLimitSeconds)
	set(&p.StartTimeout, asked.StartTimeoutSeconds)
	given.HeartbeatInterval = set(&p.HeartbeatInterval, asked.HeartbeatIntervalSeconds)
	given.HeartbeatTimeout = set(&p.HeartbeatTimeout, asked.HeartbeatTimeoutSeconds)
	set(&p.CancelGrace, asked.CancelGraceSeconds)
	set(&p.Deadline, asked.DeadlineSeconds)
	if retry := asked.Retry; retry != nil {
		given.InitialDelay = set(&p.Retry.InitialDelay, retry.InitialDelaySeconds)
		given.MaxDelay = set(&p.Retry.MaxDelay, retry.MaxDelaySeconds)
		replace(&p.Retry.MaxAttempts, retry.MaxAttempts)
		replace(&p.Retry.Multiplier, retry.Multiplier)
		replace(&p.Retry.Jitter, retry.Jitter)
		if retry.Categories != nil && len(retry.Categories) == 0 {
			return p, fault.Invalid("policy.retry.categories", "empty list; leave it out, or set maxAttempts to 1 for no retry")
		}
		if retry.Categories != nil {
			p.Retry.Categories = nil
		}
		for _, c := range retry.Categories {
			p.Retry.Categories = append(p.Retry.Categories, fault.Category(c))
		}
	}
	p.Fit(given)
	for _, v := range p.Validate() {
		field, known := policyFields[v.Field]
		if !known {
			continue // a default that the request cannot change
		}
		if v.Field == "heartbeatTimeout" && !given.HeartbeatTimeout && given.HeartbeatInterval {
			field = policyFields["heartbeatInterval"]
		}
		return p, fault.Invalid("policy."+field, "%s", v.Problem)
	}
	return p, nil
}

// secondsMost is larger than any limit in seconds, and small enough that no duration overflows.
const secondsMost = 1 << 32

func set(at *time.Duration, seconds *int) (given bool) {
	if seconds != nil {
		*at = time.Duration(min(max(*seconds, -secondsMost), secondsMost)) * time.Second
	}
	return seconds != nil
}

func replace[T any](at, given *T) {
	if given != nil {
		*at = *given
	}
}

// policyOf returns the wire form of a policy.
func policyOf(p spec.Policy) contract.Policy {
	seconds := func(d time.Duration) *int { return new(int(d / time.Second)) }
	policy := contract.Policy{
		TimeLimitSeconds: seconds(p.TimeLimit), StartTimeoutSeconds: seconds(p.StartTimeout),
		HeartbeatIntervalSeconds: seconds(p.HeartbeatInterval), HeartbeatTimeoutSeconds: seconds(p.HeartbeatTimeout),
		CancelGraceSeconds: seconds(p.CancelGrace),
		Retry: &contract.RetryPolicy{
			MaxAttempts: &p.Retry.MaxAttempts, InitialDelaySeconds: seconds(p.Retry.InitialDelay),
			Multiplier: &p.Retry.Multiplier, MaxDelaySeconds: seconds(p.Retry.MaxDelay), Jitter: &p.Retry.Jitter,
		},
	}
	if p.Deadline > 0 {
		policy.DeadlineSeconds = seconds(p.Deadline)
	}
	for _, c := range p.Retry.Categories {
		policy.Retry.Categories = append(policy.Retry.Categories, string(c))
	}
	return policy
}

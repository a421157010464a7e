package orchestrator

import (
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/run"
)

// The ranges of what a request may ask for.
const (
	multiplierMost = 10.0
	attemptsMost   = 100
)

// policyOf is what a run is held to whose request asks for that: the defaults,
// with what is given in their place, and what is not given made to agree with
// it. The fault names the field.
func policyOf(defaults run.Policy, asked *contract.Policy) (run.Policy, error) {
	p := defaults
	if asked == nil {
		return p, nil
	}
	spans := []struct {
		field    string
		given    *int
		at       *time.Duration
		from, to time.Duration
	}{
		{"policy.timeLimitSeconds", asked.TimeLimitSeconds, &p.TimeLimit, 3 * time.Second, timeLimitMost},
		{"policy.startTimeoutSeconds", asked.StartTimeoutSeconds, &p.StartTimeout, time.Second, tokenTTLMost},
		{"policy.heartbeatIntervalSeconds", asked.HeartbeatIntervalSeconds, &p.HeartbeatInterval, time.Second, timeLimitMost},
		{"policy.heartbeatTimeoutSeconds", asked.HeartbeatTimeoutSeconds, &p.HeartbeatTimeout, 2 * time.Second, timeLimitMost},
		{"policy.cancelGraceSeconds", asked.CancelGraceSeconds, &p.CancelGrace, time.Second, timeLimitMost},
	}
	for _, s := range spans {
		if err := spanOf(s.field, s.given, s.at, s.from, s.to); err != nil {
			return p, err
		}
	}
	interval, timeout := asked.HeartbeatIntervalSeconds != nil, asked.HeartbeatTimeoutSeconds != nil
	if interval || timeout || p.HeartbeatTimeout >= p.TimeLimit {
		fitHeartbeats(&p, interval, timeout)
	}
	if p.HeartbeatTimeout < 2*p.HeartbeatInterval {
		return p, fault.Invalid(heartbeatField(asked), "the heartbeat timeout (%s) has to be at least twice the interval (%s)",
			p.HeartbeatTimeout, p.HeartbeatInterval)
	}
	if p.HeartbeatTimeout >= p.TimeLimit {
		return p, fault.Invalid(heartbeatField(asked), "the heartbeat timeout (%s) has to be less than the time limit (%s)",
			p.HeartbeatTimeout, p.TimeLimit)
	}
	if asked.Retry == nil {
		return p, nil
	}
	return p, retryOf(&p.Retry, *asked.Retry)
}

// heartbeatField is the field to name where the heartbeats contradict each other
// or the time limit: the timeout, or what alone was given.
func heartbeatField(asked *contract.Policy) string {
	if asked.HeartbeatTimeoutSeconds == nil && asked.HeartbeatIntervalSeconds != nil {
		return "policy.heartbeatIntervalSeconds"
	}
	return "policy.heartbeatTimeoutSeconds"
}

// retryOf puts what is asked for in the place of the defaults in r.
func retryOf(r *run.Retry, asked contract.RetryPolicy) error {
	const field = "policy.retry."
	if n := asked.MaxAttempts; n != nil {
		if *n < 1 || *n > attemptsMost {
			return fault.Invalid(field+"maxAttempts", "there are 1 to %d attempts", attemptsMost)
		}
		r.MaxAttempts = *n
	}
	if err := spanOf(field+"initialDelaySeconds", asked.InitialDelaySeconds, &r.InitialDelay, time.Second, timeLimitMost); err != nil {
		return err
	}
	if err := spanOf(field+"maxDelaySeconds", asked.MaxDelaySeconds, &r.MaxDelay, time.Second, timeLimitMost); err != nil {
		return err
	}
	if asked.MaxDelaySeconds == nil {
		r.MaxDelay = max(r.MaxDelay, r.InitialDelay)
	}
	if asked.InitialDelaySeconds == nil {
		r.InitialDelay = min(r.InitialDelay, r.MaxDelay)
	}
	if r.MaxDelay < r.InitialDelay {
		return fault.Invalid(field+"maxDelaySeconds", "the longest delay (%s) is less than the first (%s)", r.MaxDelay, r.InitialDelay)
	}
	if m := asked.Multiplier; m != nil {
		if *m < 1 || *m > multiplierMost {
			return fault.Invalid(field+"multiplier", "the multiplier is 1 to %g", multiplierMost)
		}
		r.Multiplier = *m
	}
	if j := asked.Jitter; j != nil {
		if *j < 0 || *j > 1 {
			return fault.Invalid(field+"jitter", "the jitter is 0 to 1")
		}
		r.Jitter = *j
	}
	return categoriesOf(r, asked.Categories)
}

// categoriesOf takes the categories to try again; a cancel is none of them.
func categoriesOf(r *run.Retry, asked []string) error {
	if asked == nil {
		return nil
	}
	known := contract.Categories()
	known = slices.DeleteFunc(known, func(c string) bool { return c == contract.CategoryCancelled })
	r.Categories = nil
	for _, c := range asked {
		if !slices.Contains(known, c) {
			return fault.Invalid("policy.retry.categories", "a category to try again is one of %s", strings.Join(known, ", "))
		}
		r.Categories = append(r.Categories, fault.Category(c))
	}
	if len(asked) == 0 {
		return fault.Invalid("policy.retry.categories", "there is no category; leave it out, or set maxAttempts to 1 for no retry")
	}
	return nil
}

func spanOf(field string, given *int, at *time.Duration, from, to time.Duration) error {
	if given == nil {
		return nil
	}
	if *given < int(from/time.Second) || *given > int(to/time.Second) {
		return fault.Invalid(field, "it is %d to %d seconds", int(from/time.Second), int(to/time.Second))
	}
	*at = time.Duration(*given) * time.Second
	return nil
}

// fitHeartbeats makes the interval and the timeout of the heartbeats that were
// not given agree with what was: whoever shortens the time limit alone does not
// mean to be told about heartbeats.
func fitHeartbeats(p *run.Policy, interval, timeout bool) {
	switch {
	case timeout:
	case interval:
		p.HeartbeatTimeout = 3 * p.HeartbeatInterval
	default:
		p.HeartbeatTimeout = max(min(p.HeartbeatTimeout, p.TimeLimit-time.Second), 2*time.Second)
	}
	if !interval {
		p.HeartbeatInterval = max(min(p.HeartbeatInterval, p.HeartbeatTimeout/3), time.Second).Truncate(time.Second)
	}
}

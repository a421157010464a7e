package job

import (
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// maxSeconds is larger than any limit in seconds, and small enough that no duration overflows.
const maxSeconds = 1 << 32

// policy returns the policy of the runs: the defaults, overridden by the definition. given are
// the fields that the definition sets.
func (d Definition) policy(defaults spec.Policy) (policy spec.Policy, given spec.Given) {
	policy, given = defaults, spec.Given{RecordRetention: true}
	set := func(to *time.Duration, value *int) bool {
		if value != nil {
			*to = time.Duration(min(max(*value, -maxSeconds), maxSeconds)) * time.Second
		}
		return value != nil
	}
	if limits := d.Policy; limits != nil {
		set(&policy.TimeLimit, limits.TimeLimitSeconds)
		set(&policy.StartTimeout, limits.StartTimeoutSeconds)
		given.HeartbeatInterval = set(&policy.HeartbeatInterval, limits.HeartbeatIntervalSeconds)
		given.HeartbeatTimeout = set(&policy.HeartbeatTimeout, limits.HeartbeatTimeoutSeconds)
		set(&policy.CancelGrace, limits.CancelGraceSeconds)
	}
	if d.Constraints != nil && d.Constraints.MaxAllowedRunTime != "" {
		policy.TimeLimit = d.Constraints.MaxAllowedRunTime.Value()
	}
	if retry := d.RetryConfig; retry != nil {
		if retry.MaxRetries != nil {
			policy.Retry.MaxAttempts = *retry.MaxRetries + 1
		}
		if given.InitialDelay = retry.InitialDelay != ""; given.InitialDelay {
			policy.Retry.InitialDelay = retry.InitialDelay.Value()
		}
		if given.MaxDelay = retry.MaxDelay != ""; given.MaxDelay {
			policy.Retry.MaxDelay = retry.MaxDelay.Value()
		}
		if retry.BackoffMultiplier != nil {
			policy.Retry.Multiplier = *retry.BackoffMultiplier
		}
	}
	if d.Deadline != "" {
		policy.Deadline = d.Deadline.Value()
	}
	d.Retention.apply(&policy, &given)
	policy.Fit(given)
	return policy, given
}

func (r *Retention) apply(policy *spec.Policy, given *spec.Given) {
	if r == nil {
		return
	}
	given.RecordRetention, policy.KeepDownloaded = r.Records != "", true
	for _, each := range []struct {
		to    *time.Duration
		value Duration
	}{{&policy.OutputRetention, r.Outputs}, {&policy.LogRetention, r.Logs}, {&policy.RecordRetention, r.Records}} {
		if each.value != "" {
			*each.to = each.value.Value()
		}
	}
	if r.Newest != nil {
		policy.Newest = *r.Newest
	}
}

// policyFields maps fields of spec.Policy to fields of a definition. The number of attempts is
// checked as maxRetries.
var policyFields = map[string]string{
	"timeLimit": "policy.timeLimitSeconds", "startTimeout": "policy.startTimeoutSeconds",
	"heartbeatInterval": "policy.heartbeatIntervalSeconds", "heartbeatTimeout": "policy.heartbeatTimeoutSeconds",
	"cancelGrace":        "policy.cancelGraceSeconds",
	"deadline":           "deadline",
	"retry.initialDelay": "retryConfig.initialDelay", "retry.maxDelay": "retryConfig.maxDelay",
	"retry.multiplier": "retryConfig.backoffMultiplier",
	"outputRetention":  "retention.outputs", "logRetention": "retention.logs", "recordRetention": "retention.records",
}

const allowedTime = "constraints.maxAllowedRunTime"

// lenient has the defaults with which a definition breaks the fewest rules. What breaks a rule
// with them does so on every deployment.
var lenient = spec.Policy{
	StartTimeout: time.Second, TimeLimit: limit.TimeLimit, HeartbeatInterval: time.Second, HeartbeatTimeout: 2 * time.Second,
	CancelGrace: time.Second, QueueTimeout: time.Second, OutputRetention: time.Second, RecordRetention: time.Second,
	Retry: spec.Retry{MaxAttempts: 1, InitialDelay: time.Second, Multiplier: 1, MaxDelay: time.Second},
}

// validatePolicy checks the limits, with the defaults of the deployment, or else with lenient ones.
func validatePolicy(d Definition, deployment *Deployment, p *problems) {
	allowed := d.Constraints != nil && d.Constraints.MaxAllowedRunTime != ""
	if limits := d.Policy; allowed && limits != nil && limits.TimeLimitSeconds != nil {
		if most := d.Constraints.MaxAllowedRunTime; most.Value() != time.Duration(*limits.TimeLimitSeconds)*time.Second {
			p.addConflict(allowedTime, "%s is not the %d s of policy.timeLimitSeconds, which is the same limit; leave one out", most, *limits.TimeLimitSeconds)
		}
	}
	if retry := d.RetryConfig; retry != nil {
		p.within("retryConfig.maxRetries", retry.MaxRetries, 0, limit.Attempts-1)
		const seconds = "retryConfig."
		p.duration(seconds+"initialDelay", retry.InitialDelay, time.Second, limit.TimeLimit)
		p.duration(seconds+"maxDelay", retry.MaxDelay, time.Second, limit.TimeLimit)
	}
	p.duration("deadline", d.Deadline, limit.MinDeadline, limit.Duration)
	if r := d.Retention; r != nil {
		const in = "retention."
		p.duration(in+"outputs", r.Outputs, time.Second, limit.Retention)
		p.duration(in+"logs", r.Logs, time.Second, limit.Retention)
		p.duration(in+"records", r.Records, time.Second, limit.Retention)
		p.within(in+"newest", r.Newest, 1, limit.NewestRuns)
	}
	defaults := lenient
	if deployment != nil {
		defaults = deployment.Policy
	}
	if d.Retention != nil && d.Retention.Newest != nil && deployment != nil && deployment.AdHoc {
		p.addConflict("retention.newest", "a run without a stored job has no newer runs; leave it out")
	}
	policy, given := d.policy(defaults)
	for _, v := range policy.Validate() {
		field, known := policyFields[v.Field]
		switch {
		case !known:
			continue
		case strings.HasPrefix(v.Field, "heartbeat") && !given.HeartbeatInterval && !given.HeartbeatTimeout:
			continue // it follows from the time limit
		case v.Field == "recordRetention" && !given.RecordRetention, v.Field == "retry.maxDelay" && !given.MaxDelay:
			continue // it follows from a longer one, which is reported
		case v.Field == "timeLimit" && allowed:
			field = allowedTime
		case v.Field == "heartbeatTimeout" && !given.HeartbeatTimeout && given.HeartbeatInterval:
			field = policyFields["heartbeatInterval"]
		}
		if !p.has(field) {
			p.bad(field, "%s", v.Problem)
		}
	}
	if c := d.Constraints; c != nil && c.MaxAllowedRunTime == "" && c.MaxExpectedRunTime.Value() >= policy.TimeLimit {
		p.addConflict("constraints.maxExpectedRunTime", "%s is never exceeded, want less than the time limit of %s", c.MaxExpectedRunTime, short(policy.TimeLimit))
	}
	for field, action := range d.actions() {
		least := policy.CancelGrace + spec.KillSlack
		if most := action.duration("limit", least); action.Type == spec.ActionKillOld && most < least {
			p.addConflict(field+".parameters.limit", "%s is too short, want at least the grace of the runs and a minute: %s", short(most), short(least))
		}
	}
}

package runs_test

import (
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func (h *fixture) exportWith(p contract.Policy) (run.Run, error) {
	call := exportCall()
	call.Request.Policy = &p
	r, _, err := h.service.Export(h.Context(), call)
	return r, err
}

func TestRequestedPolicyApplies(t *testing.T) {
	t.Parallel()
	h := setup(t)
	r, err := h.exportWith(contract.Policy{
		TimeLimitSeconds: new(14 * 24 * 3600), StartTimeoutSeconds: new(20),
		HeartbeatIntervalSeconds: new(2), HeartbeatTimeoutSeconds: new(4), CancelGraceSeconds: new(7),
		Retry: &contract.RetryPolicy{
			MaxAttempts: new(5), InitialDelaySeconds: new(3), Multiplier: new(1.5), MaxDelaySeconds: new(9), Jitter: new(0.25),
			Categories: []string{"TIMEOUT", "DATA_QUALITY"},
		},
	})
	h.ok(err)
	want := h.config.Policy
	want.TimeLimit, want.StartTimeout = 14*24*time.Hour, 20*time.Second
	want.HeartbeatInterval, want.HeartbeatTimeout, want.CancelGrace = 2*time.Second, 4*time.Second, 7*time.Second
	want.Retry.MaxAttempts, want.Retry.InitialDelay, want.Retry.MaxDelay = 5, 3*time.Second, 9*time.Second
	want.Retry.Multiplier, want.Retry.Jitter = 1.5, 0.25
	want.Retry.Categories = []fault.Category{fault.Timeout, fault.DataQuality}
	h.equal(want, r.Policy)
	// An absent field takes its default.
	plain, err := h.exportWith(contract.Policy{})
	h.ok(err)
	h.equal(h.config.Policy, plain.Policy)
	// A short time limit shortens the heartbeats.
	short, err := h.exportWith(contract.Policy{TimeLimitSeconds: new(20)})
	h.ok(err)
	if p := short.Policy; p.HeartbeatTimeout != 19*time.Second || p.HeartbeatInterval != 6*time.Second {
		t.Errorf("got heartbeats every %s with timeout %s, want 6s and 19s", p.HeartbeatInterval, p.HeartbeatTimeout)
	}
}

func TestPolicyProblemNamesItsField(t *testing.T) {
	t.Parallel()
	h := setup(t)
	retry := func(r contract.RetryPolicy) contract.Policy { return contract.Policy{Retry: &r} }
	for name, row := range map[string]struct {
		policy contract.Policy
		field  string
	}{
		"zero time limit":                 {contract.Policy{TimeLimitSeconds: new(0)}, "policy.timeLimitSeconds"},
		"negative time limit":             {contract.Policy{TimeLimitSeconds: new(-5)}, "policy.timeLimitSeconds"},
		"time limit over 14 days":         {contract.Policy{TimeLimitSeconds: new(14*24*3600 + 1)}, "policy.timeLimitSeconds"},
		"time limit overflow":             {contract.Policy{TimeLimitSeconds: new(1 << 62)}, "policy.timeLimitSeconds"},
		"start timeout over 2 h":          {contract.Policy{StartTimeoutSeconds: new(7201)}, "policy.startTimeoutSeconds"},
		"zero interval":                   {contract.Policy{HeartbeatIntervalSeconds: new(0)}, "policy.heartbeatIntervalSeconds"},
		"timeout below two intervals":     {contract.Policy{HeartbeatIntervalSeconds: new(30), HeartbeatTimeoutSeconds: new(59)}, "policy.heartbeatTimeoutSeconds"},
		"timeout at the time limit":       {contract.Policy{HeartbeatTimeoutSeconds: new(600)}, "policy.heartbeatTimeoutSeconds"},
		"interval too long":               {contract.Policy{HeartbeatIntervalSeconds: new(400)}, "policy.heartbeatIntervalSeconds"},
		"zero grace":                      {contract.Policy{CancelGraceSeconds: new(0)}, "policy.cancelGraceSeconds"},
		"grace over 5 min":                {contract.Policy{CancelGraceSeconds: new(301)}, "policy.cancelGraceSeconds"},
		"zero attempts":                   {retry(contract.RetryPolicy{MaxAttempts: new(0)}), "policy.retry.maxAttempts"},
		"too many attempts":               {retry(contract.RetryPolicy{MaxAttempts: new(101)}), "policy.retry.maxAttempts"},
		"zero delay":                      {retry(contract.RetryPolicy{InitialDelaySeconds: new(0)}), "policy.retry.initialDelaySeconds"},
		"maximum below the initial delay": {retry(contract.RetryPolicy{InitialDelaySeconds: new(9), MaxDelaySeconds: new(8)}), "policy.retry.maxDelaySeconds"},
		"multiplier below 1":              {retry(contract.RetryPolicy{Multiplier: new(0.5)}), "policy.retry.multiplier"},
		"negative jitter":                 {retry(contract.RetryPolicy{Jitter: new(-0.1)}), "policy.retry.jitter"},
		"jitter above 1":                  {retry(contract.RetryPolicy{Jitter: new(1.1)}), "policy.retry.jitter"},
		"unknown category":                {retry(contract.RetryPolicy{Categories: []string{"MOOD"}}), "policy.retry.categories"},
		"category of a cancel":            {retry(contract.RetryPolicy{Categories: []string{"CANCELLED"}}), "policy.retry.categories"},
		"empty categories":                {retry(contract.RetryPolicy{Categories: []string{}}), "policy.retry.categories"},
	} {
		_, err := h.exportWith(row.policy)
		if f := fault.Of(err); f == nil || f.Code != fault.InvalidRequest || f.Field != row.field {
			t.Errorf("%s: got %v, want %s for %s", name, err, fault.InvalidRequest, row.field)
		}
	}
}

// TestPolicyIsPartOfTheDigest repeats a key with another policy, which is another
// request.
func TestPolicyIsPartOfTheDigest(t *testing.T) {
	t.Parallel()
	h := setup(t)
	call := exportCall()
	call.IdempotencyKey = "key"
	_, _, err := h.service.Export(h.Context(), call)
	h.ok(err)
	call.Request.Policy = &contract.Policy{TimeLimitSeconds: new(20)}
	if _, _, err := h.service.Export(h.Context(), call); !fault.Is(err, fault.IdempotencyMismatch) {
		t.Errorf("got %v for another policy under the same key, want %s", err, fault.IdempotencyMismatch)
	}
}

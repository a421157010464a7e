package job_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/label"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

func TestRunOfADefinition(t *testing.T) {
	t.Parallel()
	r := parseJob(t, sample(t, "every-field.yaml")).Run(deployment().Policy)
	want := spec.Program{
		Command: []string{"--since", "24h"},
		Env:     map[string]spec.Variable{"LEVEL": {Value: "info"}, "EMPTY": {}, "TOKEN": {SecretRef: "shop-token"}},
		Input:   &spec.Input{Text: "{\"shop\": \"eu\"}\n", Size: 15},
		Output:  &spec.ProgramOutput{Path: "out/orders.csv", FileName: "orders.csv", ContentType: "text/csv"}, Completion: spec.CompletionExit,
		ExitCodes: spec.ExitCodes{Success: []int{0, 3}, Retry: []int{75}, Fail: []int{64, 65}}, DropLogs: true,
	}
	if size := (spec.Resources{CPUs: 2, MemoryMB: 512, Region: "fra"}); r.Work.Resources != size {
		t.Errorf("got resources %+v, want %+v", r.Work.Resources, size)
	}
	if got := label.Text(r.Labels); got != "checked=,example.org/tier=1,team=shop" {
		t.Errorf("got labels %s, want those of the job", got)
	}
	if r.Work.BucketCredentials != spec.BucketEnvelope {
		t.Errorf("got bucket credentials %q, want %s", r.Work.BucketCredentials, spec.BucketEnvelope)
	}
	if r.Work.Kind != spec.KindJob || r.Work.Image != "registry.example.org/import:3" || !reflect.DeepEqual(*r.Work.Program, want) {
		t.Errorf("got work %+v of %+v, want %+v", r.Work, r.Work.Program, want)
	}
	policy := deployment().Policy
	policy.TimeLimit, policy.StartTimeout, policy.CancelGrace = 20*time.Minute, 5*time.Minute, 15*time.Second
	policy.HeartbeatInterval, policy.HeartbeatTimeout = 20*time.Second, time.Minute
	policy.Retry.MaxAttempts, policy.Retry.InitialDelay, policy.Retry.Multiplier, policy.Retry.MaxDelay = 3, 10*time.Second, 1.5, 5*time.Minute
	policy.OutputRetention, policy.LogRetention, policy.RecordRetention = 48*time.Hour, 24*time.Hour, 72*time.Hour
	policy.Newest, policy.KeepDownloaded, policy.Deadline = 3, true, 2*time.Hour
	if !reflect.DeepEqual(r.Policy, policy) {
		t.Errorf("got policy %+v, want %+v", r.Policy, policy)
	}
	constraints := &spec.Constraints{
		MaxConcurrentRuns: 2, RequirePreviousSuccess: true, CatchUpWindow: 90 * time.Minute, MaxExpectedRunTime: 5 * time.Minute,
		PreRunHook: &spec.Hook{
			URL: "https://example.org/may-start", Headers: map[string]string{"X-Team": "shop"},
			SecretRef: "hook-secret", Timeout: 5 * time.Second,
		},
		PostRunHook: &spec.Hook{URL: "https://example.org/has-ended", Timeout: 10 * time.Second, Critical: true, AllowUnavailable: true},
	}
	if !reflect.DeepEqual(r.Constraints, constraints) || !r.Constraints.BeforeRun() {
		t.Errorf("got constraints %+v, constrained %t, want %+v", r.Constraints, r.Constraints.BeforeRun(), constraints)
	}
	actions := &spec.Actions{
		OnViolation: &spec.Action{Type: spec.ActionRetryLater, Delay: 30 * time.Second, Limit: 10 * time.Minute},
		Each: map[spec.Constraint]spec.Action{
			spec.MaxConcurrentRuns:      {Type: spec.ActionKillOld, Limit: 5 * time.Minute},
			spec.RequirePreviousSuccess: {Type: spec.ActionSkip},
			spec.CatchUpWindow:          {Type: spec.ActionWait, Limit: 10 * time.Minute},
			spec.MaxExpectedRunTime:     {Type: spec.ActionWebhook, Hook: &spec.Hook{URL: "https://example.org/slow", Timeout: 3 * time.Second}},
		},
		OnFailure: &spec.Action{Type: spec.ActionWebhook, Hook: &spec.Hook{URL: "https://example.org/alert", SecretRef: "hook-secret", Timeout: 10 * time.Second}},
		OnSuccess: &spec.Action{Type: spec.ActionTriggerJob, JobID: "publish-orders"},
		OnSkip:    &spec.Action{Type: spec.ActionWebhook, Hook: &spec.Hook{URL: "https://example.org/skipped", Timeout: 10 * time.Second}},
		OnRetry:   &spec.Action{Type: spec.ActionWebhook, Hook: &spec.Hook{URL: "https://example.org/retried", Timeout: 10 * time.Second}},
		OnLate: &spec.Action{Type: spec.ActionNotify, Hook: &spec.Hook{SecretRef: "smtp-password", Timeout: 10 * time.Second, Notice: &spec.Notice{
			Service: spec.ServiceEmail, Host: "smtp.example.org", Port: 465, Username: "reports", From: "Reports <reports@example.org>",
			To: []string{"ops@example.org", "Ana <ana@example.org>"}, Subject: "{{jobId}} is late", Text: "Attempt {{attempt}}: {{message}}",
		}}},
		Further: map[spec.EndAction][]spec.Action{spec.OnRetry: {{Type: spec.ActionTriggerJob, JobID: "repair-orders"}}},
	}
	if !reflect.DeepEqual(r.Actions, actions) {
		t.Errorf("got actions %+v, want %+v", r.Actions, actions)
	}
}

func TestRunOfASmallDefinition(t *testing.T) {
	t.Parallel()
	r := parseJob(t, "id: a\nimage: b\noutput: {path: /tmp/x.csv}\n").Run(deployment().Policy)
	if r.Constraints != nil || r.Actions != nil || r.Constraints.BeforeRun() || r.Work.Program.Completion != spec.CompletionExit || r.Work.Program.Output.FileName != "x.csv" {
		t.Errorf("got %+v with program %+v, want no constraints and actions, completion exit and output x.csv", r, r.Work.Program)
	}
	if !reflect.DeepEqual(r.Policy, deployment().Policy) {
		t.Errorf("got policy %+v, want the default", r.Policy)
	}
}

func TestRunOfAnExport(t *testing.T) {
	t.Parallel()
	r := parseJob(t, sample(t, "nightly-export.yaml")).Run(deployment().Policy)
	want := spec.Work{
		Kind: spec.KindExport, Format: "mods", PI: "01K9XVBAQZF9EHDRXGBEADTZYY", Resources: spec.Resources{MemoryMB: 512},
		Options: []byte(`{"recursive":true,"maxDepth":3,"parallelBatchSize":10,"includeOcr":true,"cheimarrosMode":"full"}`),
	}
	if !reflect.DeepEqual(r.Work, want) || r.Constraints.MaxConcurrentRuns != 1 || r.Actions.OnViolation.Type != spec.ActionWait {
		t.Errorf("got work %+v with options %s, want %+v with constraints and actions", r.Work, r.Work.Options, want)
	}
	if named := parseJob(t, "id: a\nimage: worker:2\nexport: {format: dc, pi: 01K9XVBAQZF9EHDRXGBEADTZYY}\n").Run(deployment().Policy); named.Work.Image != "worker:2" {
		t.Errorf("got image %q, want that of the job", named.Work.Image)
	}
}

func TestActionDefaults(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]spec.Action{
		"retry_later": {Type: spec.ActionRetryLater, Delay: time.Minute, Limit: 24 * time.Hour},
		"wait":        {Type: spec.ActionWait, Limit: 24 * time.Hour},
		"kill_old":    {Type: spec.ActionKillOld, Limit: 10 * time.Minute},
		"skip":        {Type: spec.ActionSkip},
	} {
		r := parseJob(t, "id: a\nimage: b\nconstraints: {maxConcurrentRuns: 1}\nactions: {onConstraintViolation: {type: "+kind+"}}\n").Run(deployment().Policy)
		if !reflect.DeepEqual(*r.Actions.OnViolation, want) {
			t.Errorf("%s: got %+v, want %+v", kind, *r.Actions.OnViolation, want)
		}
	}
}

func TestDiffNamesChangedFields(t *testing.T) {
	t.Parallel()
	before := parseJob(t, sample(t, "nightly-report.yaml"))
	text := strings.NewReplacer("catchUpWindow: 6h", "catchUpWindow: 7h", "[report.py, --all]", "[report.py]",
		"name: Nightly report\n", "", "logs: keep", "logs: keep\npriority: batch", "{secretRef: report-key}", "plain").Replace(sample(t, "nightly-report.yaml"))
	changes, err := job.Diff(before, parseJob(t, text))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range changes {
		got = append(got, c.String())
	}
	want := []string{
		`~ command: ["report.py","--all"] -> ["report.py"]`,
		`~ constraints.catchUpWindow: "6h" -> "7h"`,
		`+ env.API_KEY: "plain"`,
		`- env.API_KEY.secretRef: "report-key"`,
		`- name: "Nightly report"`,
		`+ priority: "batch"`,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if same, err := job.Diff(before, before); err != nil || len(same) != 0 {
		t.Errorf("got %v, %v, want no changes", same, err)
	}
}

func TestDigestIgnoresTheForm(t *testing.T) {
	t.Parallel()
	digest := func(document string) string {
		text, err := parseJob(t, document).Digest()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	a := digest("id: a\nimage: b\nenv: {X: \"1\", Y: \"2\"}\n")
	if b := digest(`{"env": {"Y": "2", "X": "1"}, "image": "b", "id": "a"}`); b != a {
		t.Errorf("got digests %s and %s, want the same", a, b)
	}
	if c := digest("id: a\nimage: b\nenv: {X: \"1\", Y: \"3\"}\n"); c == a {
		t.Errorf("got digest %s for another definition, want a different one", c)
	}
}

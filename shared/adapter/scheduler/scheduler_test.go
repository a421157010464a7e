package scheduler_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/awsfake"
	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/adapter/scheduler"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
)

var (
	epoch   = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	nightly = job.Ref{Tenant: "default", ID: "nightly"}
)

func config(c clock.Clock) scheduler.Config {
	return scheduler.Config{
		Group: "jobs", Function: "arn:aws:lambda:eu-central-1:123456789012:function:fire", Role: "arn:aws:iam::123456789012:role/wake",
		DeadLetters: "arn:aws:sqs:eu-central-1:123456789012:dead-letters", Clock: c,
	}
}

func setup(t *testing.T, plan awsfake.Plan) (*awsfake.Scheduler, *scheduler.Schedules, *clock.Virtual) {
	t.Helper()
	c := clock.NewVirtual(epoch)
	service := awsfake.NewScheduler(c, "jobs", plan)
	s, err := scheduler.New(service.AWS(), config(c))
	if err != nil {
		t.Fatal(err)
	}
	return service, s, c
}

func TestSchedules(t *testing.T) {
	t.Parallel()
	for name, plan := range map[string]awsfake.Plan{
		"every call succeeds": nil,
		"calls are throttled": awsfake.Seeded(1, 0.3, awsfake.Throttled),
		"answers are lost":    awsfake.Seeded(2, 0.2, awsfake.Lost, awsfake.Unsure),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			porttest.Schedules(t, func(t *testing.T) porttest.SchedulesHarness {
				service, s, c := setup(t, plan)
				return porttest.SchedulesHarness{Schedules: s, Now: epoch, Advance: func(d time.Duration) (delivered []job.Ref) {
					c.Advance(d)
					for _, input := range service.Invoke() {
						var ref job.Ref
						if err := json.Unmarshal([]byte(input), &ref); err != nil {
							t.Error(err)
						}
						delivered = append(delivered, ref)
					}
					return delivered
				}}
			})
		})
	}
}

func TestScheduleFields(t *testing.T) {
	t.Parallel()
	service, s, _ := setup(t, nil)
	if err := s.Set(t.Context(), nightly, epoch.Add(90*time.Minute+time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	got, ok := service.Schedules()[scheduler.Name(nightly)]
	if !ok || got.ScheduleExpression != "at(2026-11-21T10:30:01)" || got.ScheduleExpressionTimezone != "UTC" || got.ActionAfterCompletion != "NONE" {
		t.Errorf("got %+v, want a schedule at the next second that is kept", got)
	}
	if got.Target.Input != `{"tenant":"default","jobId":"nightly"}` || got.Target.Arn != config(nil).Function || got.Target.RoleArn != config(nil).Role ||
		got.Target.DeadLetterConfig.Arn != config(nil).DeadLetters || got.Target.RetryPolicy.MaximumRetryAttempts != 10 {
		t.Errorf("got target %+v, want the function with the job", got.Target)
	}
}

// TestSetIsOneCall checks that the usual change of an existing schedule is one call.
func TestSetIsOneCall(t *testing.T) {
	t.Parallel()
	service, s, _ := setup(t, nil)
	for i := range 3 {
		if err := s.Set(t.Context(), nightly, epoch.Add(time.Duration(i+1)*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	var made []string
	for _, c := range service.Calls() {
		made = append(made, c.Operation)
	}
	if got, want := strings.Join(made, " "), "UpdateSchedule CreateSchedule UpdateSchedule UpdateSchedule"; got != want {
		t.Errorf("got calls %s, want %s", got, want)
	}
}

func TestNamesAreDistinct(t *testing.T) {
	t.Parallel()
	valid, names := regexp.MustCompile(`^[0-9a-z-]{1,64}$`), map[string]job.Ref{}
	for _, ref := range []job.Ref{
		nightly,
		{Tenant: "other", ID: "nightly"},
		{Tenant: "default", ID: "night"},
		{Tenant: "default-nightly", ID: "a"},
		{Tenant: "default", ID: "nightly-a"},
		{Tenant: "default", ID: "a"},
		{Tenant: "default", ID: strings.Repeat("n", 63)},
		{Tenant: "default", ID: strings.Repeat("n", 62)},
	} {
		name := scheduler.Name(ref)
		if other, taken := names[name]; taken || !valid.MatchString(name) {
			t.Errorf("%v: got name %q as for %v, want a valid one of its own", ref, name, other)
		}
		names[name] = ref
	}
}

func TestFailuresAreUnavailable(t *testing.T) {
	t.Parallel()
	_, s, _ := setup(t, func(awsfake.Call) awsfake.Fate { return awsfake.Throttled })
	if err := s.Set(t.Context(), nightly, epoch.Add(time.Hour)); !fault.Is(err, fault.Unavailable) {
		t.Errorf("set: got %v, want Unavailable", err)
	}
	if err := s.Remove(t.Context(), nightly); !fault.Is(err, fault.Unavailable) {
		t.Errorf("remove: got %v, want Unavailable", err)
	}
}

func TestMissingNamesAreRefused(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(*scheduler.Config){
		"group": func(c *scheduler.Config) { c.Group = "" }, "function": func(c *scheduler.Config) { c.Function = "" },
		"role": func(c *scheduler.Config) { c.Role = "" }, "dead-letter queue": func(c *scheduler.Config) { c.DeadLetters = "" },
	} {
		c := config(nil)
		remove(&c)
		if _, err := scheduler.New(awsfake.NewScheduler(nil, "jobs", nil).AWS(), c); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want an error about the %s", err, name)
		}
	}
}

//go:build localstack

package scheduler_test

import (
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	service "github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"

	"github.com/sortie-dev/sortie/local/proof/port/awstest"
	"github.com/sortie-dev/sortie/shared/adapter/scheduler"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// TestSchedulesOnLocalStack sets, replaces and removes a wake-up in the real API, and
// reads what is stored.
func TestSchedulesOnLocalStack(t *testing.T) {
	t.Parallel()
	cfg := awstest.LocalStack(t)
	client, c := service.NewFromConfig(cfg), config(clock.System{})
	c.Group = "jobs-" + strings.ToLower(rand.Text())
	if _, err := client.CreateScheduleGroup(t.Context(), &service.CreateScheduleGroupInput{Name: &c.Group}); err != nil {
		t.Fatal(err)
	}
	s, err := scheduler.New(cfg, c)
	if err != nil {
		t.Fatal(err)
	}
	stored := func() (*service.GetScheduleOutput, error) {
		return client.GetSchedule(t.Context(), &service.GetScheduleInput{GroupName: &c.Group, Name: aws.String(scheduler.Name(nightly))})
	}
	at := time.Now().UTC().Add(24 * time.Hour).Truncate(time.Second)
	for _, at := range []time.Time{at, at.Add(time.Hour), at.Add(-time.Hour)} {
		if err := s.Set(t.Context(), nightly, at); err != nil {
			t.Fatal(err)
		}
		got, err := stored()
		if err != nil {
			t.Fatal(err)
		}
		if want := at.Format("at(2006-01-02T15:04:05)"); *got.ScheduleExpression != want || *got.ScheduleExpressionTimezone != "UTC" || got.State != types.ScheduleStateEnabled {
			t.Errorf("got %s in %s, %s, want %s in UTC, enabled", *got.ScheduleExpression, *got.ScheduleExpressionTimezone, got.State, want)
		}
		if *got.Target.Arn != c.Function || *got.Target.RoleArn != c.Role || *got.Target.DeadLetterConfig.Arn != c.DeadLetters || *got.Target.Input != `{"tenant":"default","jobId":"nightly"}` {
			t.Errorf("got target %+v, want the function with the job", got.Target)
		}
	}
	for range 2 {
		if err := s.Remove(t.Context(), nightly); err != nil {
			t.Fatal(err)
		}
		if _, err := stored(); !notFound(err) {
			t.Errorf("got %v after the removal, want none", err)
		}
	}
}

func notFound(err error) bool {
	_, ok := errors.AsType[*types.ResourceNotFoundException](err)
	return ok
}

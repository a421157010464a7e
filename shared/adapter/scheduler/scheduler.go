// Package scheduler wakes jobs by Amazon EventBridge Scheduler.
//
// Each job has at most one schedule: "at" its next wake-up, in one group, with a name derived
// from the job. Set updates it, and Remove deletes it. The service must not delete a schedule
// after its invocation, because the invoked function may just have updated that schedule. If
// the function finds no job, it removes the schedule.
package scheduler

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/port"
)

// The delivery of a wake-up. After the last try it is sent to the dead-letter queue, and the
// sweep fires the job.
const (
	deliveryTries   = 10
	deliverySeconds = 300
)

// maxTries is how often the SDK tries a throttled call.
const maxTries = 8

// earliest is the minimum time from now to a wake-up. The service rejects a time that has
// passed when the call arrives.
const earliest = 2 * time.Second

// Config configures Schedules. All fields except Clock are names or ARNs.
type Config struct {
	// Group is the name of the schedule group.
	Group string
	// Function is invoked with the job.Ref as JSON, through Role. DeadLetters is the
	// queue of wake-ups that could not be delivered.
	Function, Role, DeadLetters string
	Clock                       clock.Clock
}

// Schedules sets the schedules of one group. It is safe for concurrent use.
type Schedules struct {
	client *scheduler.Client
	config Config
}

var _ port.Schedules = (*Schedules)(nil)

// New returns Schedules. It makes no call.
func New(cfg aws.Config, config Config) (*Schedules, error) {
	for name, value := range map[string]string{
		"schedule group": config.Group, "function": config.Function, "role": config.Role, "dead-letter queue": config.DeadLetters,
	} {
		if value == "" {
			return nil, fmt.Errorf("cannot use the schedules: the %s is missing", name)
		}
	}
	client := scheduler.NewFromConfig(cfg, func(o *scheduler.Options) { o.RetryMaxAttempts = maxTries })
	return &Schedules{client, config}, nil
}

// Name returns the name of a job's schedule: the start of the job's id, and a hash of tenant
// and id. It has at most 64 letters, digits and '-'.
func Name(ref job.Ref) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", ref.Tenant, ref.ID))
	hash := strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))
	return ref.ID[:min(len(ref.ID), 64-1-len(hash))] + "-" + hash
}

// Set implements port.Schedules.
func (s *Schedules) Set(ctx context.Context, ref job.Ref, at time.Time) error {
	update, err := s.schedule(ref, at)
	if err != nil {
		return err
	}
	for range maxTries { // the schedule may be created and deleted meanwhile
		_, err = s.client.UpdateSchedule(ctx, update)
		if _, unknown := errors.AsType[*types.ResourceNotFoundException](err); !unknown {
			break
		}
		_, err = s.client.CreateSchedule(ctx, &scheduler.CreateScheduleInput{
			Name: update.Name, GroupName: update.GroupName, State: update.State, ActionAfterCompletion: update.ActionAfterCompletion,
			ScheduleExpression: update.ScheduleExpression, ScheduleExpressionTimezone: update.ScheduleExpressionTimezone,
			FlexibleTimeWindow: update.FlexibleTimeWindow, Target: update.Target,
		})
		if _, exists := errors.AsType[*types.ConflictException](err); !exists {
			break
		}
	}
	return unavailable(err, "set", ref)
}

func (s *Schedules) schedule(ref job.Ref, at time.Time) (*scheduler.UpdateScheduleInput, error) {
	input, err := json.Marshal(ref)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the wake-up: %w", err)
	}
	if first := s.config.Clock.Now().Add(earliest); at.Before(first) {
		at = first
	}
	if whole := at.Truncate(time.Second); whole.Before(at) { // expressions have whole seconds
		at = whole.Add(time.Second)
	}
	return &scheduler.UpdateScheduleInput{
		Name: aws.String(Name(ref)), GroupName: &s.config.Group, State: types.ScheduleStateEnabled,
		ActionAfterCompletion: types.ActionAfterCompletionNone,
		ScheduleExpression:    aws.String("at(" + at.UTC().Format("2006-01-02T15:04:05") + ")"), ScheduleExpressionTimezone: aws.String("UTC"),
		FlexibleTimeWindow: &types.FlexibleTimeWindow{Mode: types.FlexibleTimeWindowModeOff},
		Target: &types.Target{
			Arn: &s.config.Function, RoleArn: &s.config.Role, Input: aws.String(string(input)),
			DeadLetterConfig: &types.DeadLetterConfig{Arn: &s.config.DeadLetters},
			RetryPolicy:      &types.RetryPolicy{MaximumRetryAttempts: aws.Int32(deliveryTries), MaximumEventAgeInSeconds: aws.Int32(deliverySeconds)},
		},
	}, nil
}

// Precision implements port.Schedules. The service is precise to the minute, and the function
// may have a cold start.
func (s *Schedules) Precision() time.Duration { return 90 * time.Second }

// Remove implements port.Schedules.
func (s *Schedules) Remove(ctx context.Context, ref job.Ref) error {
	_, err := s.client.DeleteSchedule(ctx, &scheduler.DeleteScheduleInput{Name: aws.String(Name(ref)), GroupName: &s.config.Group})
	if _, unknown := errors.AsType[*types.ResourceNotFoundException](err); unknown {
		return nil
	}
	return unavailable(err, "remove", ref)
}

func unavailable(err error, what string, ref job.Ref) error {
	if err == nil {
		return nil
	}
	return fault.Wrap(err, fault.Unavailable, "cannot %s the wake-up of job %s", what, ref.ID)
}

package awsfake

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"

	"github.com/sortie-dev/sortie/shared/base/clock"
)

// Schedule is a stored schedule of EventBridge Scheduler with the fields of its request.
type Schedule struct {
	GroupName, State, ActionAfterCompletion        string
	ScheduleExpression, ScheduleExpressionTimezone string
	FlexibleTimeWindow                             struct{ Mode string }
	Target                                         struct {
		Arn, RoleArn, Input string
		DeadLetterConfig    struct{ Arn string }
		RetryPolicy         struct{ MaximumRetryAttempts, MaximumEventAgeInSeconds int }
	}
	ClientToken string

	at   time.Time
	done bool
}

// Scheduler is an in-process Amazon EventBridge Scheduler with one-time schedules of one group.
// It is safe for concurrent use.
//
// It implements CreateSchedule, UpdateSchedule and DeleteSchedule.
type Scheduler struct {
	clock clock.Clock
	group string
	plan  Plan

	mu        sync.Mutex
	schedules map[string]Schedule
	calls     []Call
}

// NewScheduler returns a service without schedules.
func NewScheduler(c clock.Clock, group string, plan Plan) *Scheduler {
	return &Scheduler{clock: c, group: group, plan: plan, schedules: map[string]Schedule{}}
}

// AWS returns the configuration of clients of the service. Clients retry without a delay.
func (s *Scheduler) AWS() aws.Config {
	cfg := configuration("http://scheduler.invalid", s)
	cfg.Retryer = func() aws.Retryer {
		return retry.NewStandard(func(o *retry.StandardOptions) {
			o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
		})
	}
	return cfg
}

// Calls returns all calls so far, in order.
func (s *Scheduler) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Call(nil), s.calls...)
}

// Schedules returns the schedules by name.
func (s *Scheduler) Schedules() map[string]Schedule {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.schedules)
}

// Invoke returns the inputs of the due targets, in any order, and marks their schedules as
// done.
func (s *Scheduler) Invoke() (inputs []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	for name, schedule := range s.schedules {
		if schedule.done || schedule.at.After(now) {
			continue
		}
		inputs = append(inputs, schedule.Target.Input)
		schedule.done = true
		s.schedules[name] = schedule
		if schedule.ActionAfterCompletion == "DELETE" {
			delete(s.schedules, name)
		}
	}
	return inputs
}

var operations = map[string]string{http.MethodPost: "CreateSchedule", http.MethodPut: "UpdateSchedule", http.MethodDelete: "DeleteSchedule"}

// Do implements aws.HTTPClient.
func (s *Scheduler) Do(request *http.Request) (*http.Response, error) {
	if err := request.Context().Err(); err != nil {
		return nil, err
	}
	var body []byte
	if request.Body != nil {
		var err error
		if body, err = io.ReadAll(request.Body); err != nil {
			return nil, fmt.Errorf("cannot read the request: %w", err)
		}
	}
	name := strings.TrimPrefix(request.URL.Path, "/schedules/")
	err := s.answer(operations[request.Method], name, request.URL.Query().Get("groupName"), body)
	if _, broken := errors.AsType[net.Error](err); broken {
		return nil, err
	}
	status, header, text := http.StatusOK, http.Header{"Content-Type": {"application/json"}}, []byte(`{"ScheduleArn":"arn:aws:scheduler:::schedule"}`)
	if r, ok := errors.AsType[*refusal](err); ok {
		status, text = r.httpStatus(), fmt.Appendf(nil, `{"Message":%q}`, r.message)
		header.Set("X-Amzn-Errortype", r.code)
	} else if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, ContentLength: int64(len(text)), Body: io.NopCloser(bytes.NewReader(text)), Request: request,
	}, nil
}

// answer makes a call as the plan decides.
func (s *Scheduler) answer(operation, name, group string, body []byte) error {
	s.mu.Lock()
	call := Call{Operation: operation, Subject: name, Number: 1, Write: true}
	for _, c := range s.calls {
		if c.Operation == operation && c.Subject == name {
			call.Number++
		}
	}
	s.calls = append(s.calls, call)
	s.mu.Unlock()
	fate := Applied
	if s.plan != nil {
		fate = s.plan(call)
	}
	switch fate {
	case Lost:
		return broken(call)
	case Throttled:
		return &refusal{code: "ThrottlingException", message: "Rate exceeded", status: http.StatusTooManyRequests}
	}
	err := s.apply(operation, name, group, body)
	if fate == Unsure {
		return broken(call)
	}
	return err
}

var scheduleName = regexp.MustCompile(`^[0-9a-zA-Z-_.]{1,64}$`)

func (s *Scheduler) apply(operation, name, group string, body []byte) error {
	schedule := Schedule{GroupName: group}
	if operation != "DeleteSchedule" {
		reader := json.NewDecoder(bytes.NewReader(body))
		reader.DisallowUnknownFields()
		if err := reader.Decode(&schedule); err != nil {
			return invalid("malformed request: %v", err)
		}
		if err := schedule.check(s.clock.Now()); err != nil {
			return err
		}
	}
	if !scheduleName.MatchString(name) {
		return invalid("name %q, want 1 to 64 of 0-9 a-z A-Z - _ .", name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, exists := s.schedules[name]
	switch {
	case schedule.GroupName != s.group:
		return &refusal{code: "ResourceNotFoundException", message: "schedule group does not exist", status: http.StatusNotFound}
	case operation == "CreateSchedule" && exists:
		return &refusal{code: "ConflictException", message: "schedule already exists", status: http.StatusConflict}
	case operation != "CreateSchedule" && !exists:
		return &refusal{code: "ResourceNotFoundException", message: "schedule does not exist", status: http.StatusNotFound}
	case operation == "DeleteSchedule":
		delete(s.schedules, name)
		return nil
	}
	s.schedules[name] = schedule
	return nil
}

// check validates a schedule and sets its time.
func (s *Schedule) check(now time.Time) error {
	at, err := time.Parse("at(2006-01-02T15:04:05)", s.ScheduleExpression)
	switch {
	case err != nil || s.ScheduleExpressionTimezone != "" && s.ScheduleExpressionTimezone != "UTC":
		return invalid("expression %q in %q, want at() in UTC", s.ScheduleExpression, s.ScheduleExpressionTimezone)
	case !at.After(now):
		return invalid("expression %q, want a time after %s", s.ScheduleExpression, now)
	case s.FlexibleTimeWindow.Mode != "OFF" || s.State != "" && s.State != "ENABLED":
		return invalid("mode %q and state %q, want OFF and ENABLED", s.FlexibleTimeWindow.Mode, s.State)
	case !strings.HasPrefix(s.Target.Arn, "arn:") || !strings.HasPrefix(s.Target.RoleArn, "arn:") || !json.Valid([]byte(s.Target.Input)):
		return invalid("target %+v, want two ARNs and JSON", s.Target)
	case s.Target.RetryPolicy.MaximumRetryAttempts > 185 || s.Target.RetryPolicy.MaximumEventAgeInSeconds < 60 || s.Target.RetryPolicy.MaximumEventAgeInSeconds > 86400:
		return invalid("retry policy %+v, want at most 185 and 60 to 86400", s.Target.RetryPolicy)
	}
	s.at = at
	return nil
}

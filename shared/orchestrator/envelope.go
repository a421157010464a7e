package orchestrator

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/run"
)

// envelope is the TASK_ENVELOPE of the run's attempt, as JSON. It holds a token
// and presigned addresses: it is never logged.
func (s *Service) envelope(ctx context.Context, r run.Run) (string, error) {
	renewal, err := s.grant(ctx, claimsOf(r), s.tokenLife(r.Policy))
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(contract.TaskEnvelope{
		TaskID: r.TaskID, RunID: r.ID, AssetID: r.Work.PI, TaskKey: r.Work.Kind + "/" + r.Work.Format,
		TenantID: r.Tenant, WorkspaceID: r.Workspace, CorrelationID: r.CorrelationID, Attempt: r.Attempt.Number,
		Resources: contract.Resources{
			CPUMillicores: int64(s.config.CPUs) * 1000, MemoryBytes: int64(s.config.MemoryMB) << 20,
			TimeoutMS: r.Policy.TimeLimit.Milliseconds(),
		},
		EnqueuedAt: r.CreatedAt, Deadline: r.Deadline(), CallbackBaseURL: s.config.PublicURL,
		TaskToken: renewal.TaskToken, TokenExpiresAt: renewal.TokenExpiresAt,
		HeartbeatIntervalMS: r.Policy.HeartbeatInterval.Milliseconds(),
		HeartbeatTimeoutMS:  r.Policy.HeartbeatTimeout.Milliseconds(),
		CancelGracePeriodMS: r.Policy.CancelGrace.Milliseconds(),
		Output:              renewal.Output, Log: renewal.Log,
	})
	if err != nil {
		return "", fmt.Errorf("cannot write the task's envelope: %w", err)
	}
	return string(text), nil
}

// tokenLife is how long an attempt's first token is good: as configured, but
// never shorter than until the first heartbeat of a machine that starts late.
func (s *Service) tokenLife(p run.Policy) time.Duration {
	return min(max(s.config.TokenTTL, p.StartTimeout+p.HeartbeatTimeout), tokenTTLMost)
}

// renewal is what a worker goes on with whose token has less than half of its
// life left; its zero value where there is time.
func (s *Service) renewal(ctx context.Context, bearer Bearer) (contract.TokenRenewal, error) {
	life := bearer.ExpiresAt.Sub(bearer.IssuedAt)
	if bearer.ExpiresAt.Sub(s.now()) >= life/2 {
		return contract.TokenRenewal{}, nil
	}
	return s.grant(ctx, bearer.Claims, life)
}

// grant makes a token for the attempt, and the addresses to upload to as long as
// it is good. Each attempt has its own: what an earlier one still uploads is
// nobody's output.
func (s *Service) grant(ctx context.Context, claims contract.Claims, life time.Duration) (contract.TokenRenewal, error) {
	until := s.now().Add(life).Truncate(time.Second)
	token, err := s.mint(ctx, claims, contract.AudienceWorker, until)
	if err != nil {
		return contract.TokenRenewal{}, err
	}
	granted := contract.TokenRenewal{TaskToken: token, TokenExpiresAt: until}
	if s.ports.Outputs == nil {
		return granted, nil
	}
	if granted.Output, err = s.upload(ctx, claims, "output", until); err != nil {
		return contract.TokenRenewal{}, err
	}
	if granted.Log, err = s.upload(ctx, claims, "log", until); err != nil {
		return contract.TokenRenewal{}, err
	}
	return granted, nil
}

func (s *Service) upload(ctx context.Context, claims contract.Claims, name string, until time.Time) (*contract.Upload, error) {
	key := attemptPrefix(claims.TaskID, claims.Attempt) + name
	url, err := s.ports.Outputs.PresignPut(ctx, key, "", until.Sub(s.now()))
	if err != nil {
		return nil, fmt.Errorf("cannot sign the address of the %s: %w", name, err)
	}
	return &contract.Upload{URL: url, Key: key, ExpiresAt: until}, nil
}

// attemptPrefix is where one attempt's worker may upload by its envelope.
func attemptPrefix(taskID string, attempt int) string {
	return OutputPrefix(taskID) + "attempt-" + strconv.Itoa(attempt) + "/"
}

package orchestrator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/job"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// RunOnceRequest is a request for a run that no stored job defines.
type RunOnceRequest struct {
	Identity port.Identity
	// Document is the definition in JSON, without an id and a schedule.
	Document []byte
	// Input is the standard input of the program, at most limit.Input bytes.
	Input          []byte
	IdempotencyKey string
	CorrelationID  string
}

// RunOnce creates a run of a definition, as Submit does. Its input is stored before the
// commit. Faults: those of DefinitionProblems, CheckImage and Submit, and Unprocessable
// for a constraint that compares runs of one job.
func (s *Definitions) RunOnce(ctx context.Context, in RunOnceRequest) (r run.Run, existing bool, err error) {
	if err := checkKey(in.IdempotencyKey); err != nil {
		return r, false, err
	}
	d, problems := job.Parse(in.Document, &job.Deployment{
		Policy: s.policy, Pools: []string{s.pool}, CheckURL: s.hooks.CheckURL, AdHoc: true,
	})
	if len(problems) > 0 {
		return r, false, newDefinitionProblems(problems)
	}
	if err := s.CheckImage(in.Identity, d.Image); err != nil {
		return r, false, err
	}
	r = d.Run(s.policy)
	if err := checkAlone(r.Constraints); err != nil {
		return run.Run{}, false, err
	}
	digest, err := d.Digest()
	if err != nil {
		return run.Run{}, false, fmt.Errorf("cannot compare the definition: %w", err)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "run of %s with %x", digest, sha256.Sum256(in.Input)))
	r.Tenant, r.Workspace, r.CorrelationID = in.Identity.Tenant, in.Identity.Workspace, in.CorrelationID
	r.Trigger = run.TriggerRequest
	return s.createWithInput(ctx, r, in.IdempotencyKey, hex.EncodeToString(sum[:]), in.Input)
}

// checkAlone refuses the constraints that compare a run with others of its job.
func checkAlone(c *run.Constraints) error {
	field := ""
	switch {
	case c == nil:
	case c.MaxConcurrentRuns > 0:
		field = "maxConcurrentRuns"
	case c.RequirePreviousSuccess:
		field = "requirePreviousSuccess"
	case c.CatchUpWindow > 0:
		field = "catchUpWindow"
	}
	if field == "" {
		return nil
	}
	f := fault.New(fault.Unprocessable, "a run without a stored job has no other runs to compare with; leave the constraint out")
	f.Field = "constraints." + field
	return f
}

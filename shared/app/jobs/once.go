package jobs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/sortie-dev/sortie/shared/domain/spec"

	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// OnceRequest is a request for a run that no stored job defines.
type OnceRequest struct {
	Identity port.Identity
	// Document is the definition in JSON, without an id and a schedule.
	Document []byte
	// Input is the standard input of the program, at most limit.Input bytes.
	Input          []byte
	IdempotencyKey string
	CorrelationID  string
	// PayloadDigest is run.Run.PayloadDigest.
	PayloadDigest string
	// TraceParent is the W3C trace context of the request; empty without one.
	TraceParent string
}

// RunOnce creates a run of a definition, as Submit does. Its input is stored before the
// commit. Faults: those of Definition and Submit, and Unprocessable
// for a constraint that compares runs of one job.
func (s *Definitions) RunOnce(ctx context.Context, in OnceRequest) (r run.Run, existing bool, err error) {
	if err := change.CheckKey(in.IdempotencyKey); err != nil {
		return r, false, err
	}
	r, d, err := s.adHocRun(ctx, in.Identity, in.Document)
	if err == nil {
		err = mayCall(in.Identity, d, job.Definition{})
	}
	if err != nil {
		return run.Run{}, false, err
	}
	digest, err := d.Digest()
	if err != nil {
		return run.Run{}, false, fmt.Errorf("cannot compare the definition: %w", err)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "run of %s with %x", digest, sha256.Sum256(in.Input)))
	r.CorrelationID, r.CreatedBy, r.PayloadDigest = in.CorrelationID, in.Identity.Actor(), in.PayloadDigest
	r.TraceParent = in.TraceParent
	return s.runs.CreateWithInput(ctx, r, in.IdempotencyKey, hex.EncodeToString(sum[:]), in.Input)
}

// adHocRun returns a run of a definition without a stored job.
func (s *Definitions) adHocRun(ctx context.Context, who port.Identity, document []byte) (r run.Run, d job.Definition, err error) {
	if d, err = s.parse(ctx, who, document, job.Deployment{AdHoc: true}); err != nil {
		return r, d, err
	}
	r = d.Run(s.config.Policy)
	r.Tenant, r.Workspace, r.Trigger, r.Exec = who.Tenant, who.Workspace, run.TriggerRequest, who.May(access.Exec)
	r = r.TriggersExec(r.Exec)
	return r, d, checkAlone(r.Constraints)
}

// checkAlone refuses the constraints that compare a run with others of its job.
func checkAlone(c *spec.Constraints) error {
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

// Package prompts stores the requests of inference tasks that are too large for the records of
// their tasks, as objects in the bucket of accepted outputs.
//
// A ticket is stored before the object, and the object before the record of the task. The object is
// deleted with the record, or with an answer that is not stored. A sweep removes the tickets. If a
// process has stopped before it stored the record, the sweep deletes the object. The package imports no
// other use case.
package prompts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// Records stores the tickets and the runs of tasks.
type Records interface {
	port.ResourceStore
	// Load reads a run; see port.Store.
	Load(ctx context.Context, ref run.Ref) (run.Run, error)
}

// Store stores requests. It is safe for concurrent use.
type Store struct {
	records Records
	outputs port.Outputs
	clock   clock.Clock
}

// New returns the requests in a bucket.
func New(records Records, outputs port.Outputs, c clock.Clock) *Store {
	return &Store{records, outputs, c}
}

// Save stores the request of a task that has no record yet.
func (s *Store) Save(ctx context.Context, tenant, taskID string, content []byte) (*spec.Input, error) {
	ticket := inference.Ticket(tenant, taskID, clock.UTC(s.clock))
	if err := s.records.WriteResources(ctx, []port.Resource{ticket}, nil); err != nil {
		return nil, fmt.Errorf("cannot store the ticket of the request: %w", err)
	}
	input := &spec.Input{Key: limit.InputKey(tenant, taskID), Size: int64(len(content))}
	if err := s.outputs.Put(ctx, port.Accepted, input.Key, "application/json", content); err != nil {
		return nil, fmt.Errorf("cannot store the request: %w", err)
	}
	return input, nil
}

// Read returns the request of a task. Fault: NotFound if it was deleted.
func (s *Store) Read(ctx context.Context, input spec.Input) ([]byte, error) {
	body, _, err := s.outputs.Open(ctx, port.Accepted, input.Key, port.Span{})
	if errors.Is(err, port.ErrNotFound) {
		return nil, fault.New(fault.NotFound, "the request of the task was deleted")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open the request: %w", err)
	}
	content, err := io.ReadAll(io.LimitReader(body, inference.RequestSize))
	_ = body.Close() // it was read
	if err != nil {
		return nil, fmt.Errorf("cannot read the request: %w", err)
	}
	return content, nil
}

// Delete deletes the request of a task. It does nothing without one.
func (s *Store) Delete(ctx context.Context, tenant, taskID string) error {
	if err := s.outputs.Delete(ctx, port.Accepted, limit.InputKey(tenant, taskID)); err != nil {
		return fmt.Errorf("cannot delete the request: %w", err)
	}
	return nil
}

// collect removes a ticket that is due, and first the request of a task that has no record.
func (s *Store) collect(ctx context.Context, tenant, taskID string) error {
	ticket, err := s.records.LoadResource(ctx, inference.TicketOf(tenant, taskID))
	if errors.Is(err, port.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the ticket of a request: %w", err)
	}
	_, err = s.records.Load(ctx, run.Ref{Tenant: tenant, ID: taskID})
	if errors.Is(err, port.ErrNotFound) {
		err = s.Delete(ctx, tenant, taskID)
	}
	if err != nil {
		return fmt.Errorf("cannot collect the request of task %s: %w", taskID, err)
	}
	if err := s.records.WriteResources(ctx, nil, []port.Resource{ticket}); err != nil {
		return fmt.Errorf("cannot remove the ticket of a request: %w", err)
	}
	return nil
}

// Expiring are resources of one or more kinds that a sweep removes.
type Expiring interface {
	// Expired returns a page of at most limit resources that may have expired, and the cursor of the
	// next page.
	Expired(ctx context.Context, after string, limit int) ([]port.ResourceRef, string, error)
	// Collect removes a resource that has expired. It returns port.ErrConflict if it has changed.
	Collect(ctx context.Context, tenant, id string) error
}

// Beside returns the tickets and other resources, for one sweep. The ids of the others do not begin
// like those of inference tasks.
func (s *Store) Beside(other Expiring) Expiring { return beside{s, other} }

type beside struct {
	*Store

	other Expiring
}

// inTickets begins the cursors of the tickets, which follow the other resources.
const inTickets = "prompts:"

// Expired implements Expiring.
func (b beside) Expired(ctx context.Context, after string, limit int) ([]port.ResourceRef, string, error) {
	after, tickets := strings.CutPrefix(after, inTickets)
	if !tickets {
		found, next, err := b.other.Expired(ctx, after, limit)
		if err == nil && next == "" {
			next = inTickets
		}
		return found, next, err
	}
	found, next, err := b.records.ResourcesDue(ctx, inference.TicketKind, clock.UTC(b.clock), after, limit)
	if next != "" {
		next = inTickets + next
	}
	return found, next, err
}

// Collect implements Expiring.
func (b beside) Collect(ctx context.Context, tenant, id string) error {
	if strings.HasPrefix(id, "inf_") {
		return b.collect(ctx, tenant, id)
	}
	return b.other.Collect(ctx, tenant, id)
}

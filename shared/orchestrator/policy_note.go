package orchestrator

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/shared/budget"
	"github.com/sortie-dev/sortie/shared/catalog"
	"github.com/sortie-dev/sortie/shared/job"
	"github.com/sortie-dev/sortie/shared/livelog"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// Documents encodes the content of events that do not belong to a commit of a run: resources,
// as clients see them, and output.
type Documents struct {
	Job   func(j job.Job) ([]byte, error)
	Pool  func(p run.Pool) ([]byte, error)
	Model func(m catalog.Model) ([]byte, error)
	// Budget encodes the limit of an account.
	Budget func(a budget.Account) ([]byte, error)
	// Log returns the event of a chunk of a run's output that was accepted at a time.
	Log LogEvent
}

// LogEvent is Documents.Log.
type LogEvent func(r run.Run, chunk livelog.Frame, at time.Time) events.Envelope

// policyChange is a change of a resource.
type policyChange struct {
	tenant, workspace string
	resource, id      string
	// version is the version that clients see. revision counts all changes of the resource
	// since it was created.
	version, revision int64
	created           time.Time
	// before and after are the documents of the resource. before is nil for a new resource,
	// after for a deleted one.
	before, after []byte
	// reason is events.Policy.Reason.
	reason string
}

// note returns the event of the change by an actor. Its correlation id is that of ctx.
func (c policyChange) note(ctx context.Context, by run.Actor, at time.Time) (port.Note, error) {
	p := &events.Policy{Resource: c.resource, ID: c.id, Version: c.version, Reason: c.reason}
	for _, side := range []struct {
		digest   *string
		document []byte
	}{{&p.Before, c.before}, {&p.After, c.after}} {
		if side.document == nil {
			continue
		}
		digest, err := events.Digest(side.document)
		if err != nil {
			return port.Note{}, fmt.Errorf("cannot compute the digest of %s %s: %w", c.resource, c.id, err)
		}
		*side.digest = digest
	}
	// A resource that is created again has other keys than the one before it.
	name := fmt.Sprintf("%s/%s/%d", c.resource, c.id, c.created.UnixNano())
	key := events.ResourceKey(eventtype.PolicyUpdated, name, c.revision)
	id := run.EventID(at, fmt.Sprintf("%q %s", c.tenant, key))
	document, err := json.Marshal(events.Envelope{
		SchemaVersion: events.SchemaVersion, EventID: events.ID(id), EventType: eventtype.PolicyUpdated, OccurredAt: at.UTC(), IdempotencyKey: key,
		CorrelationID: correlationOf(ctx), TenantID: c.tenant, ProjectID: c.workspace, Actor: events.ActorOf(by.Name(), by.Scopes), Policy: p,
	})
	if err != nil {
		return port.Note{}, fmt.Errorf("cannot encode the event of %s %s: %w", c.resource, c.id, err)
	}
	return port.Note{Tenant: c.tenant, ID: id, At: at, Document: document}, nil
}

// note returns the event of a change of a job. before is nil for a new job, after for a deleted
// one.
func (s *Jobs) note(ctx context.Context, who port.Identity, before, after *job.Job) (note port.Note, err error) {
	of := after
	if after == nil {
		of = before
	}
	c := policyChange{
		tenant: of.Tenant, workspace: of.Workspace, resource: "job", id: of.ID,
		version: of.Version, revision: of.Revision + 1, created: of.CreatedAt,
	}
	if before != nil {
		c.before, err = s.document(*before)
	}
	if err == nil && after != nil {
		c.after, err = s.document(*after)
	}
	if err != nil {
		return port.Note{}, fmt.Errorf("cannot encode job %s: %w", of.ID, err)
	}
	return c.note(ctx, actorOf(who), s.now())
}

// note returns the event of a change of a pool. before is nil for a new pool, after for a
// deleted one.
func (s *Pools) note(ctx context.Context, who port.Identity, before, after *run.Pool) (note port.Note, err error) {
	of := after
	if after == nil {
		of = before
	}
	c := policyChange{
		tenant: of.Tenant, resource: "pool", id: of.ID, version: of.Version + 1, revision: of.Version + 1, created: of.CreatedAt,
	}
	if before != nil {
		c.before, err = s.document(*before)
	}
	if err == nil && after != nil {
		stored := *after
		stored.Version++
		c.after, err = s.document(stored)
	}
	if err != nil {
		return port.Note{}, fmt.Errorf("cannot encode pool %s: %w", of.ID, err)
	}
	return c.note(ctx, actorOf(who), s.now())
}

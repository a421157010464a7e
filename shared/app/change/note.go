package change

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Resource is a resource before and after a change.
type Resource struct {
	Tenant, Workspace string
	// Kind is the kind of resource, such as job. ID is its id within the kind.
	Kind, ID string
	// Version is the version that clients see. Revision counts all changes of the resource
	// since it was created.
	Version, Revision int64
	Created           time.Time
	// Before and After are the documents of the resource before and after the change. Before is nil
	// for a new resource, After for a deleted one.
	Before, After []byte
	// Reason is events.Policy.Reason.
	Reason string
}

// Note returns the event of the change by an actor. Its correlation id is that of ctx.
func (c Resource) Note(ctx context.Context, by run.Actor, at time.Time) (port.Note, error) {
	p := &events.Policy{Resource: c.Kind, ID: c.ID, Version: c.Version, Reason: c.Reason}
	for _, side := range []struct {
		digest   *string
		document []byte
	}{{&p.Before, c.Before}, {&p.After, c.After}} {
		if side.document == nil {
			continue
		}
		digest, err := events.Digest(side.document)
		if err != nil {
			return port.Note{}, fmt.Errorf("cannot compute the digest of %s %s: %w", c.Kind, c.ID, err)
		}
		*side.digest = digest
	}
	// A resource that is created again has other keys than the one before it.
	name := fmt.Sprintf("%s/%s/%d", c.Kind, c.ID, c.Created.UnixNano())
	key := events.ResourceKey(eventtype.PolicyUpdated, name, c.Revision)
	id := run.EventID(at, fmt.Sprintf("%q %s", c.Tenant, key))
	document, err := json.Marshal(events.Envelope{
		SchemaVersion: events.SchemaVersion, EventID: events.ID(id), EventType: eventtype.PolicyUpdated, OccurredAt: at.UTC(), IdempotencyKey: key,
		CorrelationID: CorrelationID(ctx), TenantID: c.Tenant, ProjectID: c.Workspace, Actor: events.ActorOf(by.Name(), by.Scopes), Policy: p,
	})
	if err != nil {
		return port.Note{}, fmt.Errorf("cannot encode the event of %s %s: %w", c.Kind, c.ID, err)
	}
	return port.Note{Tenant: c.Tenant, ID: id, At: at, Document: document}, nil
}

type correlationKey struct{}

// WithCorrelationID returns a context for a client's request. The events of resources that the
// request changes have the correlation id.
func WithCorrelationID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, correlationKey{}, id)
}

// CorrelationID returns the correlation id of the request of ctx; empty outside one.
func CorrelationID(ctx context.Context) string {
	id, _ := ctx.Value(correlationKey{}).(string)
	return id
}

package inference

import (
	"encoding/json"
	"time"

	"github.com/sortie-dev/sortie/shared/port"
)

// TicketKind is the kind of the resources of tickets. Their ids are those of the tasks.
const TicketKind = "prompt"

// TicketTime is how long after its creation a ticket is swept. The record of its task is stored long
// before.
const TicketTime = time.Hour

// Ticket returns the ticket of a request that is stored as an object. It is stored before the object, so
// that a sweep finds the object of a task whose record was not stored.
func Ticket(tenant, taskID string, now time.Time) port.Resource {
	return port.Resource{ResourceRef: TicketOf(tenant, taskID), CreatedAt: now, DueAt: now.Add(TicketTime), Document: json.RawMessage("{}")}
}

// TicketOf returns the name of the ticket of a task.
func TicketOf(tenant, taskID string) port.ResourceRef {
	return port.ResourceRef{Tenant: tenant, Kind: TicketKind, ID: taskID}
}

package port

import (
	"context"
	"errors"
	"time"

	"github.com/sortie-dev/sortie/events"
)

// Connections stores the connections of readers that a gateway keeps open while no process of
// Sortie runs: the reader, its filter and its position. Connection ids are unique across
// tenants. It is safe for concurrent use, by any number of processes.
//
// LoadConnections and Connected are strongly consistent. ConnectedTenants may be eventually
// consistent. A store may remove a connection some time after its EndsAt.
type Connections interface {
	// AddConnection stores a new connection with version 1. The error is ErrConflict if its id
	// is already stored.
	AddConnection(ctx context.Context, c Connection) error
	// SaveConnection replaces the connection and increments its version. The error is
	// ErrConflict if the stored version differs, or if the connection was removed.
	SaveConnection(ctx context.Context, c Connection) error
	// RemoveConnection removes a connection and returns it as stored, or ErrNotFound.
	RemoveConnection(ctx context.Context, id string) (Connection, error)
	// LoadConnections returns a page of at most limit connections of a tenant, ordered by id.
	// after is the last id of the previous page.
	LoadConnections(ctx context.Context, tenant, after string, limit int) ([]Connection, error)
	// Connected reports whether a tenant has a connection.
	Connected(ctx context.Context, tenant string) (bool, error)
	// ConnectedTenants returns a page of at most limit tenants with a connection, in byte
	// order. after is the last one of the previous page.
	ConnectedTenants(ctx context.Context, after string, limit int) ([]string, error)
}

// Connection is the connection of a reader. JSON is its stored form.
type Connection struct {
	ID     string `json:"id"`
	Tenant string `json:"tenant"`
	// Holder is the subject of the reader's token, to check that the token is still valid. It is
	// empty for a connection of an earlier version.
	Holder string `json:"holder,omitempty"`
	// Filter selects the events that the reader gets.
	Filter events.Filter `json:"filter"`
	// Epoch and Position are those of the reader's cursor. Asked is the text of the cursor that
	// the reader requested, if the stream does not have it.
	Epoch    string `json:"epoch,omitempty"`
	Position int64  `json:"position"`
	Asked    string `json:"asked,omitempty"`
	// Refused: the reader exceeds a limit and gets the end of the stream at once.
	Refused bool `json:"refused,omitempty"`
	// Greeted: the reader has received its first message.
	Greeted bool `json:"greeted,omitempty"`
	// Failures counts the consecutive messages that could not be sent.
	Failures int `json:"failures,omitempty"`
	// OpenedAt is when the reader connected, SentAt when it got its last message, EndsAt when
	// its stream ends.
	OpenedAt time.Time `json:"openedAt"`
	SentAt   time.Time `json:"sentAt,omitzero"`
	EndsAt   time.Time `json:"endsAt"`
	// Seat is released when the connection is removed; its Room is empty without a seat.
	Seat Seat `json:"seat,omitzero"`
	// Version counts the writes, from 1.
	Version int64 `json:"-"`
}

// ErrGone is the error for a connection that its gateway does not have.
var ErrGone = errors.New("the connection is gone")

// Sockets sends messages to connections that a gateway keeps open. It is safe for concurrent use.
type Sockets interface {
	// Send sends one text message. nil means that the gateway has accepted the message; the
	// reader may already have left. ErrGone means that the gateway does not have the
	// connection: it was closed, or its handshake is not complete yet. Other faults are
	// Unavailable; the message may have been sent. Send does not retry a message that the
	// gateway refused because of its rate limit; the caller decides.
	Send(ctx context.Context, id string, message []byte) error
	// Disconnect closes a connection. It returns nil if the gateway does not have it.
	Disconnect(ctx context.Context, id string) error
}

// Pushes is the queue of tenants with messages for their connections. Each Push is received at
// least once. The pushes of one tenant are received one after another, never at the same time.
// It is safe for concurrent use.
type Pushes interface {
	// Push enqueues a tenant. It returns once that is durable. Pushes of a tenant with the same
	// reason may be merged for some minutes, even with one that was already received.
	Push(ctx context.Context, tenant, reason string) error
}

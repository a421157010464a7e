package httpkit

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/trace"
	"github.com/sortie-dev/sortie/shared/port"
)

// exchange is a request with the state of its response. It is the ResponseWriter of handlers,
// and a value in the context of the request.
type exchange struct {
	http.ResponseWriter
	correlationID string
	log           *slog.Logger
	began         time.Time
	caller        port.Identity
	// identity is the name of the caller in the log.
	identity string
	route    string
	head     bool
	// openAI: the request may come from a client of OpenAI's API.
	openAI bool
	errors ErrorShape
	fail   func(w http.ResponseWriter, r *http.Request, p *Problem)
	// refused is Route.Refused. accepted: the request counts as accepted, even if it fails
	// later.
	refused  func(ctx context.Context, code fault.Code, err error)
	accepted bool
	// endWrite releases the request from the count of MaxWrites; nil without a limit.
	endWrite func()
	// body is the part of the request body that was read; nil before that.
	body []byte
	// digest is the digest of the caller's token; empty without a token, and with a ticket.
	// scope is that of the route.
	digest string
	scope  access.Scope
	// cancel ends the context of a request whose credential is watched. revoked: the credential
	// is no longer valid, and nothing more is sent. begun: the response has begun.
	cancel         context.CancelCauseFunc
	revoked, begun atomic.Bool

	status int
	bytes  int64
	code   string
	err    error
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// CallerOf returns the identity of the client that sent the request. It is zero on routes that
// are not for clients or readers.
func CallerOf(ctx context.Context) port.Identity {
	if x := exchangeOf(ctx); x != nil {
		return x.caller
	}
	return port.Identity{}
}

// Identify records the caller of a request whose route needs no token, for CallerOf and the log.
// The handler has authenticated the caller.
func Identify(ctx context.Context, who port.Identity) {
	if x := exchangeOf(ctx); x != nil {
		x.caller, x.identity = who, who.Subject
	}
}

// CorrelationID returns the correlation id of the request: that of the client, or a new one.
func CorrelationID(ctx context.Context) string {
	if x := exchangeOf(ctx); x != nil {
		return x.correlationID
	}
	return ""
}

// PayloadDigest returns the digest of the request body that was read, or of {} without a body.
// It is empty for a body without a canonical form.
func PayloadDigest(ctx context.Context) string {
	body := []byte("{}")
	if x := exchangeOf(ctx); x != nil && len(x.body) > 0 {
		body = x.body
	}
	digest, err := events.Digest(body)
	if err != nil {
		return ""
	}
	return digest
}

// Request returns the context and the caller of a request, and the value of the named path
// parameter.
func Request(r *http.Request, name string) (ctx context.Context, who port.Identity, id string) {
	return r.Context(), CallerOf(r.Context()), r.PathValue(name)
}

// EndWrite reports that the request has committed its changes: it no longer counts as refused
// if it fails, and no longer counts for Config.MaxWrites. Handlers that then run for long call
// it.
func EndWrite(ctx context.Context) {
	x := exchangeOf(ctx)
	if x == nil {
		return
	}
	if x.accepted = true; x.endWrite != nil {
		x.endWrite()
	}
}

// TraceParent returns the W3C trace context of the request, in the form of version 00; empty
// without a valid one.
func TraceParent(r *http.Request) string {
	given := r.Header.Values("Traceparent")
	if len(given) != 1 {
		return ""
	}
	c, _ := trace.Parse(strings.TrimSpace(given[0]))
	return c.String()
}

// Log returns the logger of the request. Its lines have the correlation id and the identity of
// the caller. Outside of a request it discards everything.
func Log(ctx context.Context) *slog.Logger {
	if x := exchangeOf(ctx); x != nil {
		return x.log.With("identity", x.identity)
	}
	return slog.New(slog.DiscardHandler)
}

// WriteHeader records the status and sends it. It does nothing after the credential was
// revoked.
func (x *exchange) WriteHeader(status int) {
	if x.revoked.Load() {
		return
	}
	x.begun.Store(true)
	if x.status == 0 && (status >= http.StatusOK || status == http.StatusSwitchingProtocols) {
		x.status = status
	}
	x.ResponseWriter.WriteHeader(status)
}

// Write writes the body and counts its bytes. It discards the body of a response to HEAD. It
// returns ErrRevoked once the caller's credential was revoked.
func (x *exchange) Write(p []byte) (int, error) {
	if x.revoked.Load() {
		return 0, ErrRevoked
	}
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	if x.head {
		return len(p), nil
	}
	n, err := x.ResponseWriter.Write(p)
	x.bytes += int64(n)
	return n, err
}

// Unwrap returns the wrapped writer, for http.ResponseController.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// correlationLimit is the maximum length of a client's correlation id.
const correlationLimit = 128

// saneID reports whether a client's correlation id is safe for logs and
// workers: 1 to 128 printable ASCII characters.
func saneID(id string) bool {
	if id == "" || len(id) > correlationLimit {
		return false
	}
	for i := range len(id) {
		if id[i] < ' ' || id[i] > '~' {
			return false
		}
	}
	return true
}

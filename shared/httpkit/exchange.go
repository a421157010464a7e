package httpkit

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/sortie-dev/sortie/shared/port"
)

// exchange is one request and what became of it. It is the ResponseWriter that
// handlers get, and the context of the request carries it.
type exchange struct {
	http.ResponseWriter
	correlationID string
	log           *slog.Logger
	began         time.Time
	caller        port.Identity
	// identity is how the log names the caller.
	identity string
	route    string
	head     bool

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

// CallerOf tells who calls: the identity of the request's client token. It is
// the zero Identity on routes that ask for none.
func CallerOf(ctx context.Context) port.Identity {
	if x := exchangeOf(ctx); x != nil {
		return x.caller
	}
	return port.Identity{}
}

// CorrelationID is the request's: the client's own, or one that was made.
func CorrelationID(ctx context.Context) string {
	if x := exchangeOf(ctx); x != nil {
		return x.correlationID
	}
	return ""
}

// Log is the logger of the request; its lines carry the correlation id. Outside
// of a request it discards.
func Log(ctx context.Context) *slog.Logger {
	if x := exchangeOf(ctx); x != nil {
		return x.log
	}
	return slog.New(slog.DiscardHandler)
}

// WriteHeader notes the status.
func (x *exchange) WriteHeader(status int) {
	if x.status == 0 && status >= http.StatusOK {
		x.status = status
	}
	x.ResponseWriter.WriteHeader(status)
}

// Write counts the bytes. The answer to HEAD has none, whatever serves it.
func (x *exchange) Write(p []byte) (int, error) {
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

// Unwrap is for http.ResponseController.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// correlationLimit is the longest id that is taken over from a client.
const correlationLimit = 128

// saneID says whether a client's correlation id can go into logs and to workers
// as it is: 1 to 128 printable ASCII characters.
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

package httpkit

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// RecheckInterval is how often a server checks the credentials of open requests. A stream ends
// at most this long after the TokenSource no longer has its token.
const RecheckInterval = 2 * time.Second

// ErrRevoked is the cause of a request's context that ended because its token was revoked or
// has expired. Later writes return it.
var ErrRevoked = errors.New("the token of the request was revoked or has expired")

var errRevoked = fault.Wrap(ErrRevoked, fault.Unauthenticated, "the token was revoked or has expired")

// watch ends open requests of clients (streams, long polls, downloads) whose credential is no
// longer valid. One goroutine checks all of them. It runs while there are open requests.
type watch struct {
	mu   sync.Mutex
	open map[*exchange]struct{}
	stop chan struct{}
}

// add watches a request until end is called. The returned context is cancelled when the
// credential becomes invalid.
func (w *watch) add(s *server, x *exchange, ctx context.Context) (watched context.Context, end func()) { //nolint:revive // the context is that of the exchange
	watched, x.cancel = context.WithCancelCause(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open == nil {
		w.open = map[*exchange]struct{}{}
	}
	if w.open[x] = struct{}{}; len(w.open) == 1 {
		w.stop = make(chan struct{})
		due, stopTimer := s.config.Clock.NewTimer(RecheckInterval)
		go w.run(s, due, stopTimer, w.stop)
	}
	return watched, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if delete(w.open, x); len(w.open) == 0 {
			close(w.stop)
		}
		x.cancel(nil)
	}
}

// run checks the requests repeatedly until the last one has ended.
func (w *watch) run(s *server, due <-chan time.Time, stopTimer func(), stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			stopTimer()
			return
		case <-due:
			w.check(s)
			due, stopTimer = s.config.Clock.NewTimer(RecheckInterval)
		}
	}
}

// check ends the requests without a valid credential. If the tokens cannot be read, all
// requests continue.
func (w *watch) check(s *server) {
	tokens, required, err := s.current(context.Background())
	if err != nil {
		return
	}
	now := s.config.Clock.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for x := range w.open {
		if !x.valid(tokens, required, now) {
			x.revoke()
		}
	}
}

// valid reports whether the credential of the caller still permits the request.
func (x *exchange) valid(tokens []access.Token, required bool, now time.Time) bool {
	if x.digest == "" {
		scopes, ok := holds(tokens, required, x.caller, now)
		return ok && slices.Contains(scopes, x.scope)
	}
	return slices.ContainsFunc(tokens, func(t access.Token) bool {
		return t.SHA256 == x.digest && !t.Expired(now) && slices.Contains(t.Scopes, x.scope)
	})
}

// revoke ends a request. Its handler cannot send anything after it.
func (x *exchange) revoke() {
	x.revoked.Store(true)
	x.cancel(ErrRevoked)
	if x.begun.Load() { // a write may be blocked
		_ = http.NewResponseController(x.ResponseWriter).SetWriteDeadline(past) // a hijacked connection ends otherwise
	}
}

// holds returns the current scopes of a ticket's holder. ok is false if the holder's token was
// revoked or has expired.
func holds(tokens []access.Token, required bool, who port.Identity, now time.Time) (scopes []access.Scope, ok bool) {
	if who.Subject == anonymous {
		return who.Scopes, !required
	}
	held, ok := access.Holder(tokens, who.Tenant, who.Subject, now)
	return held.Scopes, ok
}

// ofHolder returns the identity of a ticket, without scopes that its holder has lost. The fault
// is Unauthenticated if the holder has no valid token.
func (s *server) ofHolder(ctx context.Context, who port.Identity) (port.Identity, error) {
	for refreshed := false; ; refreshed = true {
		tokens, required, err := s.current(ctx)
		if err != nil {
			return port.Identity{}, err
		}
		if scopes, ok := holds(tokens, required, who, s.config.Clock.Now()); ok {
			who.Scopes = slices.DeleteFunc(slices.Clone(who.Scopes), func(of access.Scope) bool { return !slices.Contains(scopes, of) })
			return who, nil
		}
		if refreshed {
			return port.Identity{}, fault.New(fault.Unauthenticated, "the token of the ticket's holder was revoked or has expired")
		}
		s.config.Tokens.Refused()
	}
}

// HolderCheck returns a function that reports whether a reader of a tenant's events still has a
// token for them. It is for connections that another process has accepted.
func HolderCheck(source TokenSource, now func() time.Time) func(ctx context.Context, tenant, subject string) (bool, error) {
	return func(ctx context.Context, tenant, subject string) (bool, error) {
		tokens, _, err := source.Current(ctx)
		if err != nil {
			return false, err
		}
		held, ok := access.Holder(tokens, tenant, subject, now())
		return ok && slices.Contains(held.Scopes, access.EventsRead), nil
	}
}

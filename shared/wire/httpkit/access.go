package httpkit

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// TokenSource provides the client tokens, which may change while the server runs. It is safe
// for concurrent use, and caches tokens that are slow to read.
type TokenSource interface {
	// Current returns the token records. required reports whether programs on the server's own
	// host also need a token; all other clients always do. The error is returned to the client.
	Current(ctx context.Context) (tokens []access.Token, required bool, err error)
	// Refused reports that a token is not among the current ones. It may be new, so the next
	// call of Current refreshes the cache if possible.
	Refused()
}

// FixedTokens returns a source of tokens that never change. Tokens are required unless the list
// is empty.
func FixedTokens(tokens ...access.Token) TokenSource { return fixed(tokens) }

type fixed []access.Token

// Current implements TokenSource.
func (f fixed) Current(context.Context) (tokens []access.Token, required bool, err error) {
	return f, len(f) > 0, nil
}

// Refused implements TokenSource.
func (fixed) Refused() {}

// find looks up a token. If the token is unknown, it looks it up again after a refresh.
// required reports whether the request needs a token.
func (s *server) find(ctx context.Context, text string) (found access.Token, ok, required bool, err error) {
	if text == "" && !s.config.Loopback {
		return found, false, true, nil
	}
	tokens, required, err := s.current(ctx)
	if err != nil || text == "" {
		return found, false, required, err
	}
	if found, ok = access.Find(tokens, text); ok {
		return found, true, required, nil
	}
	s.config.Tokens.Refused()
	if tokens, required, err = s.current(ctx); err != nil {
		return found, false, required, err
	}
	found, ok = access.Find(tokens, text)
	return found, ok, required, nil
}

func (s *server) current(ctx context.Context) (tokens []access.Token, required bool, err error) {
	tokens, required, err = s.config.Tokens.Current(ctx)
	if err != nil {
		return nil, true, fmt.Errorf("cannot read the client tokens: %w", err)
	}
	return tokens, required || !s.config.Loopback, nil
}

// BearerToken returns the token of the Authorization header. present reports whether the header
// exists. The token is empty if the header is not a single bearer token.
func BearerToken(r *http.Request) (token string, present bool) {
	headers := r.Header.Values("Authorization")
	if len(headers) != 1 {
		return "", len(headers) > 0
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", true
	}
	return strings.TrimSpace(token), true
}

// admit authenticates the caller of a route and checks the route's scope.
func (s *server) admit(x *exchange, t Route, r *http.Request) error {
	switch t.Access {
	case ForWorkers:
		x.identity = "worker-token"
		return nil
	case ForAll:
		return nil
	case ForClients, ForReaders:
	}
	caller, err := s.callerOf(x, t, r)
	if err != nil {
		return err
	}
	x.identity, x.caller, x.scope = caller.Subject, caller, t.Scope
	return caller.Need(t.Scope, "")
}

// callerOf returns the caller of a route for clients or readers.
func (s *server) callerOf(x *exchange, t Route, r *http.Request) (port.Identity, error) {
	if t.Access == ForReaders {
		if who, found, err := s.openTicket(t, r); found {
			if err == nil {
				who, err = s.ofHolder(r.Context(), who)
			}
			return who, err
		}
	}
	return s.authenticate(x, r)
}

// authenticate returns the caller of a route for clients. If no token is required, an unknown
// one is ignored, because some clients always send one.
func (s *server) authenticate(x *exchange, r *http.Request) (port.Identity, error) {
	text, present := BearerToken(r)
	found, ok, required, err := s.find(r.Context(), text)
	if err != nil {
		return port.Identity{}, err
	}
	expired := ok && found.Expired(s.config.Clock.Now())
	switch {
	case ok && !expired:
		x.digest = found.SHA256
		return port.IdentityOf(found), nil
	case required && expired:
		return port.Identity{}, fault.New(fault.Unauthenticated, "the token has expired")
	case required && present:
		return port.Identity{}, fault.New(fault.Unauthenticated, "invalid token")
	case required:
		return port.Identity{}, errMissingToken
	}
	if err := mayOmitToken(r); err != nil {
		return port.Identity{}, err
	}
	if present {
		s.warnOfToken(x, r, expired)
	}
	caller := s.config.Local
	caller.Subject, caller.Anonymous = anonymous, true
	return caller, nil
}

// anonymous is the subject of a program on this host that sent no token.
const anonymous = "localhost"

// warnOfToken warns that the token of a request was ignored: in each response, and once in the
// log.
func (s *server) warnOfToken(x *exchange, r *http.Request, expired bool) {
	what := "the token is unknown"
	if expired {
		what = "the token has expired"
	}
	Warn(x, what+"; it was ignored, because no client token is configured")
	s.tokenWarning.Do(func() {
		x.log.WarnContext(r.Context(), "ignored a client's token, because no client token is configured; further ones are not logged", "reason", what)
	})
}

var errMissingToken = fault.New(fault.Unauthenticated, "missing token, want Authorization: Bearer")

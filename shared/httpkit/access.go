package httpkit

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/sortie-dev/sortie/shared/fault"
)

var errNoToken = errors.New("a server that is not bound to loopback needs AUTH_TOKEN")

// Tokens reads the client tokens from AUTH_TOKEN: one, or several with commas
// between them, where spaces around each do not count. An empty text has none.
func Tokens(text string) ([]string, error) {
	var tokens []string
	for part := range strings.SplitSeq(text, ",") {
		token := strings.TrimSpace(part)
		switch {
		case token == "" && strings.TrimSpace(text) == "":
			return nil, nil
		case token == "":
			return nil, errors.New("AUTH_TOKEN has an empty token between its commas")
		case strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }):
			return nil, errors.New("a token of AUTH_TOKEN has a space or a character that is not printable ASCII")
		}
		tokens = append(tokens, token)
	}
	return tokens, nil
}

// CheckAddress says whether a server bound to the address ("host:port") is on
// loopback. It is an error to bind anything else without a token: an empty
// host is every interface, and a name other than localhost may be any.
func CheckAddress(address string, tokens []string) (loopback bool, err error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false, fmt.Errorf("cannot bind %q: %w", address, err)
	}
	if isLoopback(host) {
		return true, nil
	}
	if len(tokens) == 0 {
		return false, fmt.Errorf("cannot bind %q: %w", address, errNoToken)
	}
	return false, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// tokens are the digests of the valid client tokens.
type tokens [][sha256.Size]byte

func tokensOf(texts []string) tokens {
	digests := make(tokens, len(texts))
	for i, text := range texts {
		digests[i] = sha256.Sum256([]byte(text))
	}
	return digests
}

// TokenSource has the client tokens of a server whose tokens may change while it
// runs, and keeps them at hand.
type TokenSource interface {
	// Current gives the tokens that are good now; its error is told to the
	// client as what it is.
	Current(ctx context.Context) ([]string, error)
	// Refused says that a token is none of them. It may be a new one: what
	// Current gives next is as new as the source can have it.
	Refused()
}

// tokens gives the digests of the tokens that are good at a request.
func (c Config) tokens() func(context.Context) (tokens, error) {
	if c.CurrentTokens == nil {
		fixed := tokensOf(c.Tokens)
		return func(context.Context) (tokens, error) { return fixed, nil }
	}
	return func(ctx context.Context) (tokens, error) {
		texts, err := c.CurrentTokens.Current(ctx)
		if err != nil {
			return nil, fmt.Errorf("cannot read the client tokens: %w", err)
		}
		return tokensOf(texts), nil
	}
}

// find looks the token up, in a time that does not tell how much of it is
// right, and names it by the first six characters of its digest.
func (t tokens) find(token string) (name string, ok bool) {
	digest := sha256.Sum256([]byte(token))
	found := 0
	for i := range t {
		found |= subtle.ConstantTimeCompare(t[i][:], digest[:])
	}
	return "token:" + hex.EncodeToString(digest[:3]), found == 1
}

// find looks a request's token up, a second time where it may be a new one.
func (s *server) find(ctx context.Context, token string) (name string, ok bool, err error) {
	good, err := s.tokens(ctx)
	if err != nil {
		return "", false, err
	}
	if name, ok = good.find(token); ok || s.config.CurrentTokens == nil {
		return name, ok, nil
	}
	s.config.CurrentTokens.Refused()
	if good, err = s.tokens(ctx); err != nil {
		return "", false, err
	}
	name, ok = good.find(token)
	return name, ok, nil
}

// BearerToken reads the token of an Authorization header. present says that
// there is such a header; the token is empty where it is not one Bearer token.
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

// admit finds out who calls a route.
func (s *server) admit(x *exchange, t Route, r *http.Request) error {
	if t.Access != ForClients {
		if t.Access == ForWorkers {
			x.identity = "worker-token"
		}
		return nil
	}
	x.caller = s.config.Client
	token, present := BearerToken(r)
	if present {
		name, ok, err := s.find(r.Context(), token)
		if err != nil {
			return err
		}
		if !ok || token == "" {
			return fault.New(fault.Unauthenticated, "the token is not valid here")
		}
		x.identity, x.caller.Subject = name, name
		return nil
	}
	if err := s.mayBeNameless(r); err != nil {
		return err
	}
	x.identity, x.caller.Subject = "localhost", "localhost"
	return nil
}

// mayBeNameless says whether a request without a token is one of this host's
// own programs: not one that a proxy passes on, and not one that a page of
// another site makes in a browser here.
func (s *server) mayBeNameless(r *http.Request) error {
	needed := fault.New(fault.Unauthenticated, "a token is needed: Authorization: Bearer")
	switch {
	case !s.config.Loopback, !isLoopback(hostOf(r.Host)),
		r.Header.Get("Forwarded") != "", r.Header.Get("X-Forwarded-For") != "":
		return needed
	}
	if r.Header.Get("Sec-Fetch-Site") == "cross-site" {
		return fault.New(fault.Forbidden, "a page of another site may not call this without a token")
	}
	for _, origin := range r.Header.Values("Origin") {
		from, err := url.Parse(origin)
		if err != nil || !strings.EqualFold(from.Host, r.Host) {
			return fault.New(fault.Forbidden, "a page of another origin may not call this without a token")
		}
	}
	return nil
}

// checkHost refuses, on loopback, a name that is not this server's: a page
// whose name was bound to a loopback address after it was loaded.
func (s *server) checkHost(r *http.Request) error {
	host := hostOf(r.Host)
	if !s.config.Loopback || isLoopback(host) {
		return nil
	}
	if public := hostOf(s.config.PublicHost); public != "" && strings.EqualFold(host, public) {
		return nil
	}
	return fault.New(fault.Forbidden, "this server is not called by that name; it is on loopback")
}

// hostOf is the host without its port and the brackets of IPv6.
func hostOf(hostPort string) string {
	if host, _, err := net.SplitHostPort(hostPort); err == nil {
		return host
	}
	return strings.Trim(hostPort, "[]")
}

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

var errNoToken = errors.New("missing AUTH_TOKEN, required for a server that does not bind to loopback")

// Tokens parses AUTH_TOKEN: one token, or several that are separated by commas.
// Spaces around a token are ignored. An empty text has no tokens.
func Tokens(text string) ([]string, error) {
	var tokens []string
	for part := range strings.SplitSeq(text, ",") {
		token := strings.TrimSpace(part)
		switch {
		case token == "" && strings.TrimSpace(text) == "":
			return nil, nil
		case token == "":
			return nil, errors.New("AUTH_TOKEN: empty token between commas")
		case strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }):
			return nil, errors.New("AUTH_TOKEN: invalid character in a token, want printable ASCII without spaces")
		}
		tokens = append(tokens, token)
	}
	return tokens, nil
}

// CheckAddress reports whether an address to bind ("host:port") is on loopback.
// It returns an error for any other address if there is no token: an empty host
// means every interface, and a name other than localhost may resolve to any.
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

// TokenSource provides client tokens that may change while the server runs. It
// caches them.
type TokenSource interface {
	// Current returns the valid tokens. Its error is returned to the client.
	Current(ctx context.Context) ([]string, error)
	// Refused reports that a token is not among the current ones. It may be a
	// new one, so the next call of Current refreshes the cache if possible.
	Refused()
}

// tokens returns a function that returns the digests of the valid tokens.
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

// find looks up a token in constant time. name is derived from the first six
// characters of its digest.
func (t tokens) find(token string) (name string, ok bool) {
	digest := sha256.Sum256([]byte(token))
	found := 0
	for i := range t {
		found |= subtle.ConstantTimeCompare(t[i][:], digest[:])
	}
	return "token:" + hex.EncodeToString(digest[:3]), found == 1
}

// find looks up the token of a request, and again after a refresh if it is
// unknown.
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

// BearerToken returns the token of the Authorization header. present reports
// whether the header exists; the token is empty if it is not a single bearer
// token.
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

// admit authenticates the caller of a route.
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
			return fault.New(fault.Unauthenticated, "invalid token")
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

// mayBeNameless returns nil if a request without a token comes from a program
// on this host, neither through a proxy nor from a page of another site in a
// browser.
func (s *server) mayBeNameless(r *http.Request) error {
	needed := fault.New(fault.Unauthenticated, "missing token, want Authorization: Bearer")
	switch {
	case !s.config.Loopback, !isLoopback(hostOf(r.Host)),
		r.Header.Get("Forwarded") != "", r.Header.Get("X-Forwarded-For") != "":
		return needed
	}
	if r.Header.Get("Sec-Fetch-Site") == "cross-site" {
		return fault.New(fault.Forbidden, "cross-site request without a token")
	}
	for _, origin := range r.Header.Values("Origin") {
		from, err := url.Parse(origin)
		if err != nil || !strings.EqualFold(from.Host, r.Host) {
			return fault.New(fault.Forbidden, "cross-origin request without a token")
		}
	}
	return nil
}

// checkHost rejects other host names on loopback. It prevents DNS rebinding: a
// page whose name is rebound to a loopback address after it was loaded.
func (s *server) checkHost(r *http.Request) error {
	host := hostOf(r.Host)
	if !s.config.Loopback || isLoopback(host) {
		return nil
	}
	if public := hostOf(s.config.PublicHost); public != "" && strings.EqualFold(host, public) {
		return nil
	}
	return fault.New(fault.Forbidden, "unknown host name for a server on loopback")
}

// hostOf returns the host without its port and the brackets of IPv6.
func hostOf(hostPort string) string {
	if host, _, err := net.SplitHostPort(hostPort); err == nil {
		return host
	}
	return strings.Trim(hostPort, "[]")
}

package httpkit

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// CheckAddress reports whether the address to bind ("host:port") is on loopback. It returns
// ErrNoToken if there are no tokens and the address or the public URL is not on loopback. An
// empty host means all interfaces. A name other than localhost may resolve to any address, so
// it is not loopback. publicURL may be empty.
func CheckAddress(address, publicURL string, tokens bool) (loopback bool, err error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false, fmt.Errorf("cannot bind %q: %w", address, err)
	}
	loopback = isLoopback(host)
	if !loopback && !tokens {
		return false, fmt.Errorf("cannot bind %q: %w", address, ErrNoToken)
	}
	if publicURL != "" && !tokens {
		public, err := url.Parse(publicURL)
		if err != nil || !isLoopback(public.Hostname()) {
			return false, fmt.Errorf("cannot serve the public URL %q: %w", publicURL, ErrNoToken)
		}
	}
	return loopback, nil
}

// ErrNoToken is returned if an address needs a client token and there is no token.
var ErrNoToken = errors.New("missing client token, required for a server that programs of other hosts reach; set AUTH_TOKEN")

// CalledOnLoopback reports whether the host name of a request is a loopback address.
func CalledOnLoopback(r *http.Request) bool { return isLoopback(hostOf(r.Host)) }

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// mayOmitToken returns nil if a request without a token comes from a program on this host. It
// refuses requests through a proxy, and from browser pages of other sites.
func mayOmitToken(r *http.Request) error {
	if !isLoopback(hostOf(r.Host)) || r.Header.Get("Forwarded") != "" || r.Header.Get("X-Forwarded-For") != "" {
		return errMissingToken
	}
	if site := r.Header.Get("Sec-Fetch-Site"); !slices.Contains([]string{"", "none", "same-origin"}, site) {
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

// checkHost rejects other host names on a server on loopback. It prevents DNS rebinding, in
// which the name of a page is rebound to a loopback address after the page was loaded.
func (s *server) checkHost(r *http.Request) error {
	host := hostOf(r.Host)
	if !s.config.Loopback || isLoopback(host) {
		return nil
	}
	if public := hostOf(s.config.PublicHost); public != "" && strings.EqualFold(host, public) {
		return nil
	}
	return errUnknownHost
}

var errUnknownHost = fault.New(fault.Forbidden, "unknown host name for a server on loopback")

// LoopbackHost returns a handler that rejects requests with host names that are not loopback.
// It prevents DNS rebinding for other servers on loopback.
func LoopbackHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLoopback(hostOf(r.Host)) {
			WriteProblem(w, r, errUnknownHost)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hostOf returns the host without its port and without IPv6 brackets.
func hostOf(hostPort string) string {
	if host, _, err := net.SplitHostPort(hostPort); err == nil {
		return host
	}
	return strings.Trim(hostPort, "[]")
}

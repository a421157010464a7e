package httpkit_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

func noTokens(*httpkit.Config) {}

func withTokens(c *httpkit.Config) {
	c.Tokens = httpkit.FixedTokens(
		access.Full("first", "first-token", "a", "p"), access.Full("second", "second-token", "a", "q"),
		access.Token{Name: "reader", SHA256: access.Digest("a-reader"), Tenant: "b", Project: "p", Scopes: []access.Scope{access.RunsRead}},
		access.Token{Name: "expired", SHA256: access.Digest("an-old-one"), Tenant: "a", Project: "p", Scopes: access.Scopes(), ExpiresAt: began},
		access.Token{Name: "expires", SHA256: access.Digest("a-young-one"), Tenant: "a", Project: "p", Scopes: access.Scopes(), ExpiresAt: began.Add(time.Second)},
	)
}

func elsewhere(c *httpkit.Config) {
	withTokens(c)
	c.Loopback = false
}

func TestClientAuthentication(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		change  func(*httpkit.Config)
		headers []string
		status  int
		logged  string
	}{
		{"the first token", withTokens, []string{"Authorization", "Bearer first-token"}, 200, "token:"},
		{"the second token", elsewhere, []string{"Authorization", "bearer second-token"}, 200, "token:"},
		{"a wrong token", withTokens, []string{"Authorization", "Bearer wrong"}, 401, "none"},
		{"a part of a token", withTokens, []string{"Authorization", "Bearer first-toke"}, 401, "none"},
		{"the digest of a token", withTokens, []string{"Authorization", "Bearer " + access.Digest("first-token")}, 401, "none"},
		{"an empty token", withTokens, []string{"Authorization", "Bearer "}, 401, "none"},
		{"another scheme", withTokens, []string{"Authorization", "Basic Zmlyc3QtdG9rZW4="}, 401, "none"},
		{"two tokens", withTokens, []string{"Authorization", "Bearer first-token", "Authorization", "Bearer second-token"}, 401, "none"},
		{"an expired token", withTokens, []string{"Authorization", "Bearer an-old-one"}, 401, "none"},
		{"a token before its expiry", withTokens, []string{"Authorization", "Bearer a-young-one"}, 200, "token:"},
		{"no token", elsewhere, nil, 401, "none"},
		{"by the public name with a token", withTokens, []string{"Host", "sortie.example", "Authorization", "Bearer first-token"}, 200, "token:"},
		{"a page of another site with a token", withTokens, []string{"Origin", "https://evil.example", "Authorization", "Bearer first-token"}, 200, "token:"},
		{"a name rebound to loopback", withTokens, []string{"Host", "evil.example:8080", "Authorization", "Bearer first-token"}, 403, "none"},
		{"a name that looks like loopback", withTokens, []string{"Host", "127.0.0.1.evil.example", "Authorization", "Bearer first-token"}, 403, "none"},
		{"no name", withTokens, []string{"Host", "", "Authorization", "Bearer first-token"}, 403, "none"},
		{"without tokens", noTokens, nil, 200, "localhost"},
		{"without tokens, IPv6", noTokens, []string{"Host", "[::1]:8080"}, 200, "localhost"},
		{"without tokens, localhost", noTokens, []string{"Host", "LocalHost:8080"}, 200, "localhost"},
		{"without tokens, an unknown one", noTokens, []string{"Authorization", "Bearer first-token"}, 200, "localhost"},
		{"without tokens, another scheme", noTokens, []string{"Authorization", "Basic Zmlyc3QtdG9rZW4="}, 200, "localhost"},
		{"without tokens, through a proxy", noTokens, []string{"X-Forwarded-For", "203.0.113.7"}, 401, "none"},
		{"without tokens, through a proxy, an unknown one", noTokens, []string{"Forwarded", "for=203.0.113.7", "Authorization", "Bearer x"}, 401, "none"},
		{"without tokens, by the public name", noTokens, []string{"Host", "sortie.example"}, 401, "none"},
		{"without tokens, a name rebound to loopback", noTokens, []string{"Host", "evil.example:8080"}, 403, "none"},
		{"without tokens, a page of another site", noTokens, []string{"Origin", "https://evil.example"}, 403, "none"},
		{"without tokens, a page of another site, an unknown one", noTokens, []string{"Origin", "https://evil.example", "Authorization", "Bearer x"}, 403, "none"},
		{"without tokens, this server and a page of another site", noTokens, []string{"Origin", "http://127.0.0.1:8080", "Origin", "https://evil.example"}, 403, "none"},
		{"without tokens, a page of another site and this server", noTokens, []string{"Origin", "https://evil.example", "Origin", "http://127.0.0.1:8080"}, 403, "none"},
		{"without tokens, a page with a null origin", noTokens, []string{"Origin", "null"}, 403, "none"},
		{"without tokens, a page of another port", noTokens, []string{"Origin", "http://127.0.0.1:3000"}, 403, "none"},
		{"without tokens, a page of this server", noTokens, []string{"Origin", "http://127.0.0.1:8080"}, 200, "localhost"},
		{"without tokens, an image on another site", noTokens, []string{"Sec-Fetch-Site", "cross-site"}, 403, "none"},
		{"without tokens, an image on another port", noTokens, []string{"Sec-Fetch-Site", "same-site"}, 403, "none"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, ok, row.change)
			w, p := b.call(t, http.MethodGet, "/thing/1", row.headers...)
			if w.Code != row.status {
				t.Fatalf("got %d %s, want %d", w.Code, w.Body, row.status)
			}
			if row.status == 401 && (!strings.HasPrefix(w.Header().Get("WWW-Authenticate"), "Bearer") || p.Code != "UNAUTHENTICATED") {
				t.Errorf("got a 401 with %v and %q, want WWW-Authenticate and its code", w.Header(), p.Code)
			}
			if !strings.Contains(b.logs.String(), `"identity":"`+row.logged) {
				t.Errorf("got another caller in the log: %s, want the caller %q", b.logs, row.logged)
			}
			for _, secret := range []string{"first-token", "second-token", "wrong"} {
				if strings.Contains(b.logs.String(), secret) {
					t.Errorf("got a token in the log: %s, want it masked", b.logs)
				}
			}
		})
	}
}

// TestIgnoredTokenIsAWarning sends tokens to a server without configured tokens.
func TestIgnoredTokenIsAWarning(t *testing.T) {
	t.Parallel()
	b := setup(t, ok, noTokens)
	for range 3 {
		w, _ := b.call(t, http.MethodGet, "/thing/1", "Authorization", "Bearer first-token")
		if got := w.Header().Values("Warning"); w.Code != 200 || len(got) != 1 || !strings.Contains(got[0], "the token is unknown; it was ignored") {
			t.Errorf("got %d with the warnings %q, want 200 with one", w.Code, got)
		}
	}
	if n := strings.Count(b.logs.String(), "ignored a client's token"); n != 1 || strings.Contains(b.logs.String(), "first-token") {
		t.Errorf("got %d warnings in the log %s, want one without the token", n, b.logs)
	}
	if w, _ := b.call(t, http.MethodGet, "/thing/1"); w.Header().Get("Warning") != "" {
		t.Errorf("without a token: got the warning %q", w.Header().Get("Warning"))
	}
}

// TestTokenIsRequiredWhereverOneIsSet sends requests that a proxy on the same host can send:
// with any Host that the server accepts, with and without proxy headers.
func TestTokenIsRequiredWhereverOneIsSet(t *testing.T) {
	t.Parallel()
	b := setup(t, ok, withTokens)
	for _, host := range []string{"127.0.0.1:8080", "localhost", "[::1]:8080", "sortie.example", "SORTIE.example:443"} {
		for _, header := range [][2]string{
			{"Accept", "*/*"},
			{"X-Forwarded-For", "127.0.0.1"},
			{"X-Forwarded-For", ""},
			{"Forwarded", "for=127.0.0.1"},
			{"X-Real-Ip", "127.0.0.1"},
			{"X-Forwarded-Host", "localhost"},
			{"Origin", "http://" + host},
			{"Authorization", ""},
		} {
			if w, _ := b.call(t, http.MethodGet, "/thing/1", "Host", host, header[0], header[1]); w.Code != http.StatusUnauthorized {
				t.Errorf("Host %s with %v and no token: got %d, want 401", host, header, w.Code)
			}
		}
	}
}

func TestTokenExpiresOnTheClock(t *testing.T) {
	t.Parallel()
	now := clock.NewVirtual(began)
	b := setup(t, ok, withTokens, func(c *httpkit.Config) { c.Clock = now })
	for _, want := range []int{200, 401} {
		if w, p := b.call(t, http.MethodGet, "/thing/1", "Authorization", "Bearer a-young-one"); w.Code != want {
			t.Errorf("at %v: got %d %s, want %d", now.Now(), w.Code, p.Detail, want)
		}
		now.Advance(time.Second)
	}
}

func TestMissingScopeIsNamed(t *testing.T) {
	t.Parallel()
	b := setup(t, ok, withTokens)
	if w, _ := b.call(t, http.MethodGet, "/thing/1", "Authorization", "Bearer a-reader"); w.Code != http.StatusOK {
		t.Errorf("GET: got %d, want 200", w.Code)
	}
	w, p := b.call(t, http.MethodPost, "/thing/1", "Authorization", "Bearer a-reader")
	if w.Code != http.StatusForbidden || p.Code != "MISSING_SCOPE" || !strings.Contains(p.Detail, string(access.RunsWrite)) {
		t.Errorf("POST: got %d %s, want 403 MISSING_SCOPE with %s", w.Code, w.Body, access.RunsWrite)
	}
}

func caller(w http.ResponseWriter, r *http.Request) error {
	return httpkit.WriteJSON(w, http.StatusOK, httpkit.CallerOf(r.Context()))
}

func TestTokenGivesTheIdentity(t *testing.T) {
	t.Parallel()
	b := setup(t, caller, withTokens)
	w, _ := b.call(t, http.MethodGet, "/thing/1", "Authorization", "Bearer a-reader")
	var got port.Identity
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Tenant != "b" || got.Workspace != "p" || !slices.Equal(got.Scopes, []access.Scope{access.RunsRead}) ||
		got.Subject != "token:"+access.Digest("a-reader")[:6] {
		t.Errorf("got %+v, want the tenant, project, scopes and fingerprint of the record", got)
	}
}

func TestWorkersAndOpenRoutesNeedNoClientToken(t *testing.T) {
	t.Parallel()
	b := setup(t, caller, elsewhere)
	for _, call := range [][2]string{{"POST", "/worker"}, {"GET", "/open"}} {
		if w, _ := b.call(t, call[0], call[1], "Authorization", "Bearer a-workers-own"); w.Code != 200 {
			t.Errorf("%v: got %d, want 200", call, w.Code)
		}
	}
}

// secret is a TokenSource whose current tokens are those of its last refresh.
type secret struct {
	stored, current []string
	optional        bool
	fails           error
}

func (s *secret) Refused() { s.current = s.stored }
func (s *secret) Current(context.Context) (tokens []access.Token, required bool, err error) {
	return access.OfTexts(s.current, "a", "p"), !s.optional, s.fails
}

func TestTokenSourceIsRefreshed(t *testing.T) {
	t.Parallel()
	source := &secret{stored: []string{"first"}, current: []string{"first"}}
	b := setup(t, caller, func(c *httpkit.Config) { c.Tokens, c.Loopback = source, false })
	status := func(token string) int {
		w, _ := b.call(t, http.MethodGet, "/thing/1", "Authorization", "Bearer "+token)
		return w.Code
	}
	got := []int{status("first"), status("second")}
	source.stored = []string{"second"}
	got = append(got, status("first"), status("second"), status("first"))
	source.stored, source.current = nil, nil // a secret without a value
	got = append(got, status("first"), status(""))
	source.fails = fault.New(fault.Unavailable, "the secret cannot be read")
	if got = append(got, status("first")); !slices.Equal(got, []int{200, 401, 200, 200, 401, 401, 401, 503}) {
		t.Errorf("got responses %v, want 401 for refused tokens and 503 for an unreadable secret", got)
	}
}

// TestOptionalTokenIsUsed uses a server on loopback with a token that is not required.
func TestOptionalTokenIsUsed(t *testing.T) {
	t.Parallel()
	source := &secret{stored: []string{"known"}, current: []string{"known"}, optional: true}
	b := setup(t, caller, func(c *httpkit.Config) { c.Tokens = source })
	for authorization, want := range map[string]string{"": "local", "Bearer other": "local", "Bearer known": "a"} {
		w, _ := b.call(t, http.MethodGet, "/thing/1", "Authorization", authorization)
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"Tenant":"`+want+`"`) {
			t.Errorf("%q: got %d %s, want the tenant %s", authorization, w.Code, w.Body, want)
		}
	}
	elsewhere := setup(t, caller, func(c *httpkit.Config) { c.Tokens, c.Loopback = source, false })
	if w, _ := elsewhere.call(t, http.MethodGet, "/thing/1"); w.Code != http.StatusUnauthorized {
		t.Errorf("not on loopback: got %d, want 401", w.Code)
	}
}

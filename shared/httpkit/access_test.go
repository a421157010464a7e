package httpkit_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/httpkit"
)

func TestClientAuthentication(t *testing.T) {
	t.Parallel()
	public := func(c *httpkit.Config) { c.Loopback = false }
	for _, row := range []struct {
		name    string
		change  func(*httpkit.Config)
		headers []string
		status  int
		logged  string
	}{
		{"anonymous on loopback", nil, nil, 200, "localhost"},
		{"IPv6", nil, []string{"Host", "[::1]:8080"}, 200, "localhost"},
		{"localhost", nil, []string{"Host", "LocalHost:8080"}, 200, "localhost"},
		{"the first token", nil, []string{"Authorization", "Bearer first-token"}, 200, "token:"},
		{"the second token", public, []string{"Authorization", "bearer second-token"}, 200, "token:"},
		{"a wrong token on loopback", nil, []string{"Authorization", "Bearer wrong"}, 401, "none"},
		{"a part of a token", nil, []string{"Authorization", "Bearer first-toke"}, 401, "none"},
		{"an empty token", nil, []string{"Authorization", "Bearer "}, 401, "none"},
		{"another scheme", nil, []string{"Authorization", "Basic Zmlyc3QtdG9rZW4="}, 401, "none"},
		{"two tokens", nil, []string{"Authorization", "Bearer first-token", "Authorization", "Bearer second-token"}, 401, "none"},
		{"no token, not on loopback", public, nil, 401, "none"},
		{"a token where none is configured", func(c *httpkit.Config) { c.Tokens = nil }, []string{"Authorization", "Bearer first-token"}, 401, "none"},
		{"through a proxy", nil, []string{"X-Forwarded-For", "203.0.113.7"}, 401, "none"},
		{"by the public name without a token", nil, []string{"Host", "sortie.example"}, 401, "none"},
		{"by the public name with a token", nil, []string{"Host", "sortie.example", "Authorization", "Bearer first-token"}, 200, "token:"},
		{"a name rebound to loopback", nil, []string{"Host", "evil.example:8080"}, 403, "none"},
		{"a name that looks like loopback", nil, []string{"Host", "127.0.0.1.evil.example"}, 403, "none"},
		{"no name", nil, []string{"Host", ""}, 403, "none"},
		{"a page of another site", nil, []string{"Origin", "https://evil.example"}, 403, "none"},
		{"a page with a null origin", nil, []string{"Origin", "null"}, 403, "none"},
		{"a page of another port", nil, []string{"Origin", "http://127.0.0.1:3000"}, 403, "none"},
		{"a page of this server", nil, []string{"Origin", "http://127.0.0.1:8080"}, 200, "localhost"},
		{"an image on another site", nil, []string{"Sec-Fetch-Site", "cross-site"}, 403, "none"},
		{"a page of another site with a token", nil, []string{"Origin", "https://evil.example", "Authorization", "Bearer first-token"}, 200, "token:"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			change := row.change
			if change == nil {
				change = func(*httpkit.Config) {}
			}
			b := setup(t, ok, change)
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

func TestWorkersAndOpenRoutesNeedNoClientToken(t *testing.T) {
	t.Parallel()
	b := setup(t, ok, func(c *httpkit.Config) { c.Loopback = false })
	for _, call := range [][2]string{{"POST", "/worker"}, {"GET", "/open"}} {
		if w, _ := b.call(t, call[0], call[1], "Authorization", "Bearer a-workers-own"); w.Code != 200 {
			t.Errorf("%v: got %d, want 200", call, w.Code)
		}
	}
}

func TestCheckAddress(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		address  string
		token    bool
		loopback bool
		fails    bool
	}{
		{"127.0.0.1:8080", false, true, false},
		{"127.1.2.3:0", false, true, false},
		{"[::1]:8080", false, true, false},
		{"localhost:8080", false, true, false},
		{":8080", false, false, true},
		{"0.0.0.0:8080", false, false, true},
		{"[::]:8080", false, false, true},
		{"192.168.1.2:80", false, false, true},
		{"example.com:80", false, false, true},
		{"0.0.0.0:8080", true, false, false},
		{"127.0.0.1:8080", true, true, false},
		{"8080", true, false, true},
	} {
		var tokens []string
		if row.token {
			tokens = []string{"t"}
		}
		loopback, err := httpkit.CheckAddress(row.address, tokens)
		if loopback != row.loopback || (err != nil) != row.fails {
			t.Errorf("%s with token %v: got loopback %v, %v, want %v and an error: %v", row.address, row.token, loopback, err, row.loopback, row.fails)
		}
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		text  string
		want  int
		fails bool
	}{
		{"", 0, false},
		{"  ", 0, false},
		{"one", 1, false},
		{"one, two", 2, false},
		{"one,,two", 0, true},
		{"one,", 0, true},
		{"one two", 0, true},
		{"ön", 0, true},
	} {
		tokens, err := httpkit.Tokens(row.text)
		if len(tokens) != row.want || (err != nil) != row.fails {
			t.Errorf("%q: got %d tokens, %v, want %d and an error: %v", row.text, len(tokens), err, row.want, row.fails)
		}
		if err != nil && strings.Contains(err.Error(), "one") {
			t.Errorf("got a token in the error: %v, want it masked", err)
		}
	}
}

// secret is a TokenSource with the tokens of its last refresh.
type secret struct {
	stored, current []string
	fails           error
}

func (s *secret) Current(context.Context) ([]string, error) { return s.current, s.fails }
func (s *secret) Refused()                                  { s.current = s.stored }

func TestTokenSourceIsRefreshed(t *testing.T) {
	t.Parallel()
	source := &secret{stored: []string{"first"}, current: []string{"first"}}
	b := setup(t, ok, func(c *httpkit.Config) { c.Tokens, c.Loopback, c.CurrentTokens = nil, false, source })
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

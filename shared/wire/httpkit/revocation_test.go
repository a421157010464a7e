package httpkit_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// changing is a TokenSource whose records a test can change.
type changing struct {
	mu       sync.Mutex
	tokens   []access.Token
	required bool
	fails    error
}

func (c *changing) Refused() {}
func (c *changing) Current(context.Context) (tokens []access.Token, required bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tokens, c.required, c.fails
}

func (c *changing) set(fails error, required bool, tokens ...access.Token) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens, c.required, c.fails = tokens, required, fails
}

// TestRevokedTokenEndsOpenRequests opens a long request, revokes its credential, and lets the
// server check. A response that has begun must end; otherwise it must be 401.
func TestRevokedTokenEndsOpenRequests(t *testing.T) {
	t.Parallel()
	own := access.Full("own", "token-of-the-test", "a", "p")
	other := access.Full("other", "token-of-another", "a", "p")
	less := own
	less.Scopes = []access.Scope{access.Admin}
	short := own
	short.ExpiresAt = began.Add(httpkit.RecheckInterval)
	for name, row := range map[string]struct {
		before, after []access.Token
		optional      bool // before the change
		path          string
		fails         error
		stays         bool
	}{
		"revoked":                  {before: []access.Token{own, other}, after: []access.Token{other}},
		"the last one":             {before: []access.Token{own}},
		"replaced under its name":  {before: []access.Token{own}, after: []access.Token{access.Full("own", "another-text-of-it", "a", "p")}},
		"without the scope":        {before: []access.Token{own}, after: []access.Token{less}},
		"expired":                  {before: []access.Token{short}, after: []access.Token{short}},
		"kept":                     {before: []access.Token{own, other}, after: []access.Token{own}, stays: true},
		"tokens that are unread":   {before: []access.Token{own}, fails: fault.New(fault.Unavailable, "no secret"), stays: true},
		"ticket":                   {before: []access.Token{own}, path: "/readers?ticket=x"},
		"ticket of a kept token":   {before: []access.Token{own, other}, after: []access.Token{own}, path: "/readers?ticket=x", stays: true},
		"no token until one is":    {optional: true, after: []access.Token{other}},
		"ticket without one":       {optional: true, after: []access.Token{other}, path: "/readers?ticket=none"},
		"revoked while none needs": {before: []access.Token{own}, optional: true, after: []access.Token{other}},
	} {
		for _, begins := range []bool{true, false} {
			t.Run(name+map[bool]string{true: ", begun", false: ", waiting"}[begins], func(t *testing.T) {
				t.Parallel()
				source, now := &changing{tokens: row.before, required: !row.optional}, clock.NewVirtual(began)
				entered, leave := make(chan struct{}), make(chan struct{})
				b := setup(t, func(w http.ResponseWriter, r *http.Request) error {
					if begins {
						_, _ = io.WriteString(w, "begun ")
						_ = http.NewResponseController(w).Flush()
					}
					close(entered)
					select {
					case <-r.Context().Done():
					case <-leave:
					}
					_, err := io.WriteString(w, "secret")
					return err
				}, func(c *httpkit.Config) {
					c.Tokens, c.Clock = source, now
					c.Tickets = func(_ context.Context, text string) (port.Identity, string, error) {
						who := port.Identity{Tenant: "a", Subject: own.Subject(), Scopes: []access.Scope{access.EventsRead}}
						if text == "none" {
							who.Subject = "localhost"
						}
						return who, "", nil
					}
				})
				server := httptest.NewServer(b.handler)
				t.Cleanup(server.Close)
				path := row.path
				if path == "" {
					path = "/thing/1"
				}
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				if len(row.before) > 0 && row.path == "" {
					r.Header.Set("Authorization", "Bearer token-of-the-test")
				}
				got := make(chan string, 1)
				go func() {
					answer, err := http.DefaultClient.Do(r)
					if err != nil {
						got <- err.Error()
						return
					}
					text, _ := io.ReadAll(answer.Body)
					_ = answer.Body.Close()
					got <- answer.Status + " " + string(text)
				}()
				<-entered
				source.set(row.fails, true, row.after...)
				now.Advance(httpkit.RecheckInterval)
				if row.stays {
					close(leave)
				}
				text := <-got
				if strings.Contains(text, "secret") != row.stays || strings.HasPrefix(text, "401") != (!begins && !row.stays) || strings.Contains(text, "begun") != begins {
					t.Errorf("got %q, want the rest: %v", text, row.stays)
				}
			})
		}
	}
}

// TestTicketIsValidAsLongAsItsToken uses tickets of a token before and after a change of the
// token's record.
func TestTicketIsValidAsLongAsItsToken(t *testing.T) {
	t.Parallel()
	own := access.Full("own", "token-of-the-test", "a", "p")
	less, old := own, own
	less.Scopes, old.ExpiresAt = []access.Scope{access.RunsRead}, began
	elsewhere := own
	elsewhere.Tenant = "b"
	source := &changing{required: true}
	b := setup(t, ok, func(c *httpkit.Config) {
		c.Tokens = source
		c.Tickets = func(context.Context, string) (port.Identity, string, error) {
			return port.Identity{Tenant: "a", Subject: own.Subject(), Scopes: []access.Scope{access.EventsRead, access.RunsRead}}, "", nil
		}
	})
	for _, row := range []struct {
		name   string
		tokens []access.Token
		status int
	}{
		{"valid", []access.Token{own}, 200},
		{"without the scope", []access.Token{less}, 403},
		{"expired", []access.Token{old}, 401},
		{"of another tenant", []access.Token{elsewhere}, 401},
		{"revoked", nil, 401},
		{"another token", []access.Token{access.Full("own", "token-of-another", "a", "p")}, 401},
	} {
		source.set(nil, true, row.tokens...)
		if w, _ := b.call(t, http.MethodGet, "/readers?ticket=x"); w.Code != row.status {
			t.Errorf("%s: got %d %s, want %d", row.name, w.Code, w.Body, row.status)
		}
	}
}

// TestRevocationIsEffectiveWithinFiveSeconds adds up the delays on one host.
func TestRevocationIsEffectiveWithinFiveSeconds(t *testing.T) {
	t.Parallel()
	if httpkit.RecheckInterval > 3*time.Second {
		t.Errorf("got an interval of %s, want at most 3s, and a second of the cache of tokens", httpkit.RecheckInterval)
	}
}

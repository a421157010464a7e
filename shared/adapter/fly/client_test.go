package fly

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/superfly/fly-go/tokens"
)

// TestAuthorizationIsThatOfTheOfficialClient compares the header with the one of fly-go.
func TestAuthorizationIsThatOfTheOfficialClient(t *testing.T) {
	t.Parallel()
	for _, token := range []string{
		"", "plain", " plain ", "Bearer plain", "bearer  plain", "FlyV1 fm2_abc", "FlyV1 fm2_abc,fm1r_def", "fm1a_x,user", "Bearer FlyV1 fm2_a, fm2_b", "other plain", "user,user2",
	} {
		if got, want := Authorization(token), tokens.Parse(token).FlapsHeader(); got != want {
			t.Errorf("%q: got %q, want %q", token, got, want)
		}
	}
}

// TestCallIsRepeatedAfterAProxysRefusal checks that an update is not repeated, because that
// would restart a machine.
func TestCallIsRepeatedAfterAProxysRefusal(t *testing.T) {
	t.Parallel()
	for status, calls := range map[int]int{http.StatusBadGateway: 1 + repeats, http.StatusServiceUnavailable: 1 + repeats, http.StatusInternalServerError: 1, http.StatusConflict: 1} {
		for what, call := range map[string]func(c client) error{
			"launch":  func(c client) error { return failed(c.Launch(t.Context(), "app", machineInput{Name: "a"})) },
			"get":     func(c client) error { return failed(c.Get(t.Context(), "app", "m")) },
			"stop":    func(c client) error { return c.Stop(t.Context(), "app", "m", stopConfig{}) },
			"destroy": func(c client) error { return c.Destroy(t.Context(), "app", "m") },
			"update":  func(c client) error { return failed(c.Update(t.Context(), "app", "m", machineInput{})) },
		} {
			var bodies []string
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				bodies = append(bodies, string(body))
				w.WriteHeader(status)
			}))
			var pauses []time.Duration
			c := client{web.Client(), func(_ context.Context, d time.Duration) bool { pauses = append(pauses, d); return true }}
			c.http.Transport = redirected{web.Listener.Addr().String(), http.DefaultTransport}
			err := call(c)
			web.Close()
			want := calls
			if what == "update" {
				want = 1
			}
			if refusal, ok := errors.AsType[*apiError](err); !ok || refusal.status != status || len(bodies) != want || len(pauses) != want-1 {
				t.Errorf("%s, %d: got %v after %d calls, want %d", what, status, err, len(bodies), want)
			}
			if slices.ContainsFunc(bodies, func(body string) bool { return body != bodies[0] }) {
				t.Errorf("%s, %d: got bodies %q, want the same each time", what, status, bodies)
			}
		}
	}
}

func failed(_ *machine, err error) error { return err }

// redirected sends requests to a host.
type redirected struct {
	host string
	next http.RoundTripper
}

func (r redirected) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.URL.Scheme, req.URL.Host = "http", r.host
	return r.next.RoundTrip(req)
}

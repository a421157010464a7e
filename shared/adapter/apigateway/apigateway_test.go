package apigateway_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/adapter/apigateway"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// gateway is the Management API of one stage, as the API reference describes it.
type gateway struct {
	t *testing.T

	mu    sync.Mutex
	open  map[string]bool
	sent  map[string][]string
	fail  string
	calls int
}

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls++
	id, ok := strings.CutPrefix(r.URL.Path, "/dev/@connections/")
	if !ok || !strings.Contains(r.Header.Get("Authorization"), "/eu-central-1/execute-api/aws4_request") {
		g.t.Errorf("got %s %s with %q, want a signed request about a connection of the stage", r.Method, r.URL, r.Header.Get("Authorization"))
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		g.t.Error(err)
	}
	refuse := func(status int, name string) {
		w.Header().Set("X-Amzn-ErrorType", name)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"message":"no"}`)
	}
	switch {
	case g.fail == "LimitExceededException":
		refuse(http.StatusTooManyRequests, g.fail)
	case g.fail != "":
		refuse(http.StatusRequestEntityTooLarge, g.fail)
	case !g.open[id]:
		refuse(http.StatusGone, "GoneException")
	case r.Method == http.MethodPost:
		g.sent[id] = append(g.sent[id], string(body))
	case r.Method == http.MethodDelete:
		delete(g.open, id)
		w.WriteHeader(http.StatusNoContent)
	default:
		g.t.Errorf("got %s, want POST or DELETE", r.Method)
	}
}

func setup(t *testing.T) (*gateway, *apigateway.Sockets) {
	t.Helper()
	g := &gateway{t: t, open: map[string]bool{}, sent: map[string][]string{}}
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	s, err := apigateway.New(aws.Config{
		Region: "eu-central-1", HTTPClient: server.Client(),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}, nil
		}),
	}, server.URL+"/dev")
	if err != nil {
		t.Fatal(err)
	}
	return g, s
}

func TestSockets(t *testing.T) {
	t.Parallel()
	porttest.Sockets(t, func(t *testing.T) porttest.SocketsHarness {
		g, s := setup(t)
		return porttest.SocketsHarness{
			Sockets: s,
			Connect: func(id string) { g.mu.Lock(); defer g.mu.Unlock(); g.open[id] = true },
			Sent:    func(id string) []string { g.mu.Lock(); defer g.mu.Unlock(); return g.sent[id] },
			Open:    func(id string) bool { g.mu.Lock(); defer g.mu.Unlock(); return g.open[id] },
		}
	})
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]fault.Code{"LimitExceededException": fault.Unavailable, "PayloadTooLargeException": fault.Internal} {
		g, s := setup(t)
		g.open["a"], g.fail = true, name
		err := s.Send(t.Context(), "a", []byte("x"))
		if !fault.Is(err, code) || errors.Is(err, port.ErrGone) || g.calls != 1 {
			t.Errorf("%s: got %v after %d calls, want %s after one", name, err, g.calls, code)
		}
	}
	for _, stage := range []string{"", "wss://a.example/dev", "a.example"} {
		if _, err := apigateway.New(aws.Config{}, stage); err == nil {
			t.Errorf("%q: got no error", stage)
		}
	}
}

package outskirts

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"testing"

	"github.com/sortie-dev/sortie/local/collection"
	"github.com/sortie-dev/sortie/shared/adapter/clock"
)

func TestMachinesAndTheCollectionAreServedUntilStop(t *testing.T) {
	t.Parallel()
	c := setup(t)
	o, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	machines := "http://" + c.Machines + "/v1/apps/" + App + "/machines"
	for url, want := range map[string]int{
		machines: http.StatusOK,
		"http://" + c.Source + "/entities/" + collection.SampleRoot: http.StatusOK,
	} {
		if got := get(t, url, c.Token); got != want {
			t.Errorf("GET %s: %d", url, got)
		}
	}
	if got := get(t, machines, "another"); got != http.StatusUnauthorized {
		t.Errorf("another token is answered with %d", got)
	}
	if err := o.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if again, err := Start(t.Context(), c); err != nil {
		t.Errorf("it cannot be started again: %v", err)
	} else if err := again.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAnAddressThatIsTakenLeavesNothingRunning(t *testing.T) {
	t.Parallel()
	c := setup(t)
	taken, err := net.Listen("tcp", c.Source)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), c); err == nil {
		t.Fatal("it starts")
	}
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	o, err := Start(t.Context(), c)
	if err != nil {
		t.Fatalf("the first start has left something: %v", err)
	}
	if err := o.Stop(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}

func setup(t *testing.T) Config {
	t.Helper()
	return Config{
		Machines: free(t), Source: free(t), Token: "secret", Dir: t.TempDir(),
		Worker: []string{"/bin/true"}, Supervisor: []string{"/bin/true"}, Clock: clock.System{}, Log: slog.New(slog.DiscardHandler),
	}
}

// free is an address that nobody listens on.
func free(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

func get(t *testing.T, url, token string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// bench is an agent with a cluster and a fake of Sortie whose responses the test sets. The test
// calls the agent's turns.
type bench struct {
	*Agent
	seen    []port.MachineStatus
	partial error
	token   string
	// status and header are Sortie's response. reports are the reports that it received since
	// the last call of turns.
	status  int
	header  map[string]string
	reports [][]string
	tokens  []string
	log     strings.Builder
}

// Observed implements Cluster.
func (b *bench) Observed(context.Context) ([]port.MachineStatus, error) { return b.seen, b.partial }

// ServeHTTP acts as Sortie.
func (b *bench) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var report contract.MachineReport
	if err := json.NewDecoder(r.Body).Decode(&report); err != nil || r.URL.Path != "/v1/machines:report" || report.Cluster != "east" {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	var ids []string
	answer := contract.MachineReportAnswer{}
	for _, m := range report.Machines {
		ids = append(ids, m.MachineID)
		answer.Machines = append(answer.Machines, contract.MachineReportResult{RunID: m.RunID, Attempt: m.Attempt, Result: contract.MachineChanged})
	}
	b.reports, b.tokens = append(b.reports, ids), append(b.tokens, r.Header.Get("Authorization"))
	for name, value := range b.header {
		w.Header().Set(name, value)
	}
	if b.status != http.StatusOK {
		w.WriteHeader(b.status)
		_, _ = fmt.Fprint(w, `{"detail": "why it is refused"}`)
		return
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func setup(t *testing.T) *bench {
	t.Helper()
	b := &bench{token: "the token", status: http.StatusOK}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	b.restart(server.URL, server.Client())
	return b
}

// restart replaces the agent by a new process.
func (b *bench) restart(url string, client *http.Client) {
	b.Agent = New(Config{
		URL: url, Name: "east", Tenant: "acme", Cluster: b, Client: client, Log: slog.New(slog.NewTextHandler(&b.log, nil)),
		Clock: clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
		Token: func() (string, error) { return b.token, nil },
	})
}

// turns makes n turns and checks the ids of each report.
func (b *bench) turns(t *testing.T, n int, want ...[]string) {
	t.Helper()
	b.reports = nil
	for range n {
		b.turn(t.Context())
	}
	if !slices.EqualFunc(b.reports, want, slices.Equal) {
		t.Errorf("got reports %v, want %v", b.reports, want)
	}
}

func machine(id string, phase port.MachinePhase) port.MachineStatus {
	return port.MachineStatus{
		Machine: port.Machine{Runner: "kubernetes", Cluster: "east", App: "runs", ID: id}, Phase: phase,
		Owner: port.MachineOwner{Tenant: "acme", RunID: "run-" + id, Attempt: 1},
	}
}

// TestChangesAreReportedOnce simulates the life of machines.
func TestChangesAreReportedOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.turns(t, 1)
	if !b.Ready() {
		t.Error("got an agent that is not ready")
	}
	stuck := machine("b", port.MachineCreating)
	stuck.StartFault = fault.New(fault.Image, "no image")
	b.seen = []port.MachineStatus{machine("a", port.MachineCreating), stuck}
	b.turns(t, 3, []string{"b"})
	b.seen = []port.MachineStatus{machine("a", port.MachineRunning), stuck, machine("c", port.MachineRunning)}
	b.turns(t, 3, []string{"a", "c"})
	b.seen[0] = machine("a", port.MachineEnding)
	b.turns(t, 2)
	b.seen[0] = machine("a", port.MachineGone)
	b.turns(t, 2, []string{"a"})
	b.seen = nil // b and c disappear without a trace
	b.turns(t, 3, []string{"b", "c"})
	if len(b.ledger) != 0 {
		t.Errorf("got %d machines remembered, want none", len(b.ledger))
	}
}

// TestOthersAreNotReported checks machines of another tenant, and machines without an owner.
func TestOthersAreNotReported(t *testing.T) {
	t.Parallel()
	b := setup(t)
	foreign, nameless := machine("a", port.MachineGone), machine("b", port.MachineGone)
	foreign.Owner.Tenant, nameless.Owner = "other", port.MachineOwner{Tenant: "acme"}
	b.seen = []port.MachineStatus{foreign, nameless}
	b.turns(t, 2)
}

// TestReportIsRepeatedUntilAccepted refuses reports in each way, and restarts the agent.
func TestReportIsRepeatedUntilAccepted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.seen = []port.MachineStatus{machine("a", port.MachineGone)}
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable} {
		b.status = status
		b.turns(t, 2, []string{"a"}, []string{"a"})
		if b.Ready() || !strings.Contains(b.log.String(), "why it is refused") {
			t.Errorf("%d: got a ready agent, or no reason in its log", status)
		}
	}
	if strings.Contains(b.log.String(), "the token") {
		t.Error("got a log with the token")
	}
	b.status, b.token = http.StatusOK, "a new token"
	b.turns(t, 2, []string{"a"})
	if last := b.tokens[len(b.tokens)-1]; last != "Bearer a new token" || !b.Ready() {
		t.Errorf("got %q, ready %v, want the new token", last, b.Ready())
	}
	b.restart(b.cfg.URL, b.cfg.Client)
	b.turns(t, 2, []string{"a"}) // at least once
}

// TestReportsArePaced checks the pauses after failed reports and the size of a report.
func TestReportsArePaced(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range limit.ReportedMachines + 1 {
		b.seen = append(b.seen, machine(fmt.Sprintf("m%03d", i), port.MachineRunning))
	}
	b.seen = append(b.seen, machine("z", port.MachineGone))
	b.status = http.StatusServiceUnavailable
	for i, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second} {
		if got := b.turn(t.Context()); got != want {
			t.Errorf("pause %d: got %s, want %s", i, got, want)
		}
	}
	b.header = map[string]string{"Retry-After": "100"}
	if got := b.turn(t.Context()); got != 100*time.Second {
		t.Errorf("got a pause of %s, want that of Retry-After", got)
	}
	b.status, b.reports = http.StatusOK, nil
	for range 3 {
		if got := b.turn(t.Context()); got != time.Second {
			t.Errorf("got a pause of %s, want 1 s", got)
		}
	}
	if len(b.reports) != 2 || len(b.reports[0]) != limit.ReportedMachines || b.reports[0][0] != "z" || len(b.reports[1]) != 2 {
		t.Errorf("got reports %v, want the machine that is gone first and %d at once", b.reports, limit.ReportedMachines)
	}
}

// TestMalformedReportIsDropped checks that a report that Sortie rejects as malformed does not
// delay the others.
func TestMalformedReportIsDropped(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.seen, b.status = []port.MachineStatus{machine("a", port.MachineGone)}, http.StatusBadRequest
	b.turns(t, 2, []string{"a"})
	b.seen, b.status = append(b.seen, machine("b", port.MachineGone)), http.StatusOK
	b.turns(t, 2, []string{"b"})
}

// TestPartOfTheClusterProvesNoAbsence checks a cluster that does not respond.
func TestPartOfTheClusterProvesNoAbsence(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.seen = []port.MachineStatus{machine("a", port.MachineRunning)}
	b.turns(t, 1, []string{"a"})
	b.seen, b.partial = []port.MachineStatus{machine("b", port.MachineGone)}, errors.New("the API server is away")
	b.turns(t, 2, []string{"b"})
	if b.Ready() || strings.Count(b.log.String(), "the API server is away") != 1 {
		t.Errorf("got ready %v and log %s, want the failure once", b.Ready(), &b.log)
	}
	b.partial = nil
	b.turns(t, 2, []string{"a"})
	if !b.Ready() {
		t.Error("got an agent that is not ready")
	}
}

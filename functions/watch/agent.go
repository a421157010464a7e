package watch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/base/retry"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Cluster returns the machines of one Sortie instance in a cluster.
type Cluster interface {
	// Observed returns the machines in the cluster, including those that are gone. With an
	// error it returns only some of them.
	Observed(ctx context.Context) ([]port.MachineStatus, error)
}

// Config configures an Agent. All fields are required.
type Config struct {
	// URL is the address of Sortie. Name is Sortie's name of the cluster. Tenant is the tenant
	// of the token.
	URL, Name, Tenant string
	// Token returns the client token. It may change.
	Token   func() (string, error)
	Cluster Cluster
	Client  *http.Client
	Clock   clock.Clock
	Log     *slog.Logger
}

// pause is the shortest time between two reports. It is also the interval at which the agent
// reads the observed state of the cluster.
const pause = time.Second

// backoff is the pause after a report that failed.
var backoff = retry.Backoff{First: pause, Most: 30 * time.Second, Multiplier: 2}

// longestRetryAfter limits the Retry-After header that the agent accepts.
const longestRetryAfter = 5 * time.Minute

// Agent reports the machines of a cluster.
type Agent struct {
	cfg    Config
	ledger ledger
	failed int
	// ready means that the last read and the last report succeeded.
	ready atomic.Bool
}

// New returns an Agent.
func New(cfg Config) *Agent { return &Agent{cfg: cfg, ledger: ledger{}} }

// Ready reports whether the agent sees the whole cluster and Sortie accepts its reports.
func (a *Agent) Ready() bool { return a.ready.Load() }

// Run reports until ctx ends.
func (a *Agent) Run(ctx context.Context) {
	for ctx.Err() == nil {
		timer, stop := a.cfg.Clock.NewTimer(a.turn(ctx))
		select {
		case <-timer:
		case <-ctx.Done():
		}
		stop()
	}
}

// turn reads the cluster, reports changes, and returns the pause until the next turn.
func (a *Agent) turn(ctx context.Context) time.Duration {
	seen, partial := a.cfg.Cluster.Observed(ctx)
	if ctx.Err() != nil {
		return 0
	}
	a.ledger.update(a.cfg.Tenant, seen, partial == nil)
	if partial != nil && a.ready.Swap(false) {
		a.cfg.Log.Warn("the cluster is not visible", "error", partial)
	}
	news := a.ledger.news(limit.ReportedMachines)
	if len(news) == 0 {
		a.failed = 0
		a.ready.Store(partial == nil)
		return pause
	}
	after, err := a.report(ctx, news)
	if err != nil {
		a.ready.Store(false)
		if ctx.Err() != nil {
			return 0
		}
		wait := max(after, backoff.Delay(a.failed))
		a.failed++
		a.cfg.Log.Warn("cannot report machines; it is tried again", "machines", len(news), "pause", wait, "error", err)
		return wait
	}
	a.failed = 0
	a.ledger.settle(news)
	a.ready.Store(partial == nil)
	return pause
}

// report sends a report. after is the time that Sortie asks the agent to wait. A report that
// Sortie rejects as malformed is dropped, because the sweep finds its machines.
func (a *Agent) report(ctx context.Context, machines []contract.ReportedMachine) (after time.Duration, err error) {
	body, err := json.Marshal(contract.MachineReport{Cluster: a.cfg.Name, Machines: machines})
	if err != nil {
		return 0, fmt.Errorf("cannot encode the report: %w", err)
	}
	token, err := a.cfg.Token()
	if err != nil {
		return 0, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(a.cfg.URL, "/")+"/v1/machines:report", bytes.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("cannot create the request: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	response, err := a.cfg.Client.Do(request)
	if err != nil {
		return 0, fmt.Errorf("cannot call Sortie: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return 0, fmt.Errorf("cannot read Sortie's response: %w", err)
	}
	switch status := response.StatusCode; status {
	case http.StatusOK:
		return 0, a.log(text)
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		a.cfg.Log.Error("Sortie refuses a report; the sweep finds its machines", "status", status, "problem", detail(text))
		return 0, nil
	default:
		return retry.After(response.Header.Get("Retry-After"), a.cfg.Clock.Now(), longestRetryAfter), fmt.Errorf("got status %d: %s", status, detail(text))
	}
}

// log logs the result of each machine.
func (a *Agent) log(text []byte) error {
	var answer contract.MachineReportAnswer
	if err := json.Unmarshal(text, &answer); err != nil {
		return errors.New("Sortie's response is not its answer to a report") //nolint:staticcheck // a name
	}
	for _, m := range answer.Machines {
		level := slog.LevelDebug
		if m.Result == contract.MachineChanged {
			level = slog.LevelInfo
		}
		a.cfg.Log.Log(context.Background(), level, "reported a machine", "run_id", m.RunID, "attempt", m.Attempt, "result", m.Result)
	}
	return nil
}

// detail returns the explanation of a problem, or "" without one.
func detail(text []byte) string {
	var problem contract.Problem
	if err := json.Unmarshal(text, &problem); err != nil {
		return ""
	}
	return problem.Detail
}

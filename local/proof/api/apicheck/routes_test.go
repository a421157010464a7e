package apicheck_test

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/functions/activity"
	"github.com/sortie-dev/sortie/functions/callback"
	"github.com/sortie-dev/sortie/functions/control"
	"github.com/sortie-dev/sortie/functions/download"
	"github.com/sortie-dev/sortie/functions/events"
	"github.com/sortie-dev/sortie/functions/export"
	"github.com/sortie-dev/sortie/functions/inference"
	"github.com/sortie-dev/sortie/functions/jobs"
	"github.com/sortie-dev/sortie/functions/metrics"
	"github.com/sortie-dev/sortie/functions/openai"
	"github.com/sortie-dev/sortie/functions/registry"
	"github.com/sortie-dev/sortie/functions/runs"
	"github.com/sortie-dev/sortie/functions/status"
	"github.com/sortie-dev/sortie/functions/stream"
	"github.com/sortie-dev/sortie/functions/tasks"
	"github.com/sortie-dev/sortie/functions/webhooks"
	"github.com/sortie-dev/sortie/local/proof/api/apicheck"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/shared/app"
	figures "github.com/sortie-dev/sortie/shared/app/activity"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/app/grants"
	following "github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

func load(t *testing.T) *apicheck.Document {
	t.Helper()
	document, err := apicheck.Load(contract.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	return document
}

// described is a route as both the code and the document describe it.
type described struct {
	Path, Access, Scope string
	Query               []string
}

// frontDoors returns all routes of the API.
func frontDoors(s *app.System, hooks *delivery.Webhooks, signer port.Signer, records figures.Store, feed port.Feed, c clock.Clock) []httpkit.Route {
	tokens := grants.NewTokens(signer, c, func(n int) string { return strings.Repeat("0", 2*n) })
	noSeats := following.New(feed, c, slog.New(slog.DiscardHandler), func() float64 { return 0 }, following.Config{})
	return slices.Concat(
		export.Routes(s.Requests, hooks), callback.Routes(s.Workers, s.Intake), status.Routes(s.Queries, time.Second), download.Routes(s.Downloads),
		tasks.Routes(s.Queries, s.Runs, s.Logs, tasks.Keys{Tokens: signer, Events: fake.NewEventKeys(nil)}, ""), tasks.ReportRoutes(s.Reports), tasks.RedeliveryRoutes(s.Queries, s.Redeliveries), tasks.ReadyRoutes(tasks.NewReadiness(func(context.Context) error { return nil }, c), ""), jobs.Routes(s.Jobs, s.Queries, s.Explanations), control.Routes(s.Pools), runs.Routes(s.Definitions, s.Explanations), runs.ChildRoutes(s.Children),
		activity.Routes(figures.NewTally(records, feed, c, slog.New(slog.DiscardHandler))), events.Routes(noSeats, tokens), stream.Routes(noSeats, c), stream.SocketRoutes(noSeats, c),
		metrics.Routes(func(context.Context) ([]byte, error) { return []byte("sortie_pool_slots_held 0\n"), nil }),
		registry.Routes(s.Artifacts), registry.CatalogRoutes(s.Models), inference.Routes(s.Inference, c), openai.Routes(s.Inference, c), inference.BudgetRoutes(s.Budgets, c), webhooks.Routes(hooks), webhooks.ReplayRoutes(delivery.NewReplays(hooks, true)),
	)
}

func TestDocumentHasExactlyTheRoutes(t *testing.T) {
	t.Parallel()
	served := map[string]described{}
	for _, route := range frontDoors(&app.System{}, nil, nil, nil, nil, clock.NewVirtual(apitest.Began)) {
		query := slices.Clone(route.Query)
		slices.Sort(query)
		served[route.Method+" "+route.Pattern] = described{route.Pattern, string(route.Access), string(route.Scope), query}
	}
	access := map[string]httpkit.Access{
		"[]": httpkit.ForAll, "[ clientToken]": httpkit.ForClients, "[ clientToken ticketInQuery]": httpkit.ForReaders, "[workerToken workerTokenInQuery]": httpkit.ForWorkers, "[workerToken]": httpkit.ForWorkers,
	}
	written := map[string]described{}
	for _, op := range load(t).Operations() {
		if op.Method == http.MethodHead {
			continue // HEAD belongs to GET
		}
		written[op.Method+" "+op.Path] = described{op.Path, string(access[join(op.Credentials)]), strings.Join(op.Scopes, " "), op.Query}
	}
	if diff := cmp.Diff(written, served); diff != "" {
		t.Errorf("openapi.yaml (-) and the front doors (+) differ:\n%s", diff)
	}
}

func TestDocumentListsFormatsAndStates(t *testing.T) {
	t.Parallel()
	type enum struct{ Enum []string }
	var document struct {
		Components struct {
			Schemas struct {
				ExportFormat enum `yaml:"ExportFormat"`
				State        enum `yaml:"State"`
			}
		}
	}
	if err := yaml.Unmarshal(contract.OpenAPI(), &document); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(limit.Formats(), document.Components.Schemas.ExportFormat.Enum); diff != "" {
		t.Errorf("got ExportFormat (+), want the formats (-):\n%s", diff)
	}
	var states []string
	for _, state := range run.States() {
		states = append(states, string(state))
	}
	if diff := cmp.Diff(states, document.Components.Schemas.State.Enum); diff != "" {
		t.Errorf("got State (+), want the states of a run (-):\n%s", diff)
	}
}

func join(names []string) string {
	text := "["
	for i, name := range names {
		if i > 0 {
			text += " "
		}
		text += name
	}
	return text + "]"
}

package apicheck_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/functions/callback"
	"github.com/sortie-dev/sortie/functions/download"
	"github.com/sortie-dev/sortie/functions/export"
	"github.com/sortie-dev/sortie/functions/jobs"
	"github.com/sortie-dev/sortie/functions/runs"
	"github.com/sortie-dev/sortie/functions/status"
	"github.com/sortie-dev/sortie/functions/tasks"
	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/httpkit"
	"github.com/sortie-dev/sortie/shared/httpkit/apicheck"
	"github.com/sortie-dev/sortie/shared/limit"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

func load(t *testing.T) *apicheck.Document {
	t.Helper()
	document, err := apicheck.Load(contract.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	return document
}

// described is a route in terms of both the code and the document.
type described struct {
	Path, Access, Scope string
	Query               []string
}

// frontDoors returns all routes of the API.
func frontDoors(s *orchestrator.System, signer port.Signer) []httpkit.Route {
	return slices.Concat(
		export.Routes(s.Requests), callback.Routes(s.Workers), status.Routes(s.Queries, time.Second), download.Routes(s.Downloads),
		tasks.Routes(s.Queries, s.Runs, s.Logs, signer, ""), jobs.Routes(s.Jobs, s.Queries), runs.Routes(s.Definitions),
	)
}

func TestDocumentHasExactlyTheRoutes(t *testing.T) {
	t.Parallel()
	served := map[string]described{}
	for _, route := range frontDoors(&orchestrator.System{}, nil) {
		query := slices.Clone(route.Query)
		slices.Sort(query)
		served[route.Method+" "+route.Pattern] = described{route.Pattern, string(route.Access), string(route.Scope), query}
	}
	access := map[string]httpkit.Access{
		"[]": httpkit.ForAll, "[ clientToken]": httpkit.ForClients, "[workerToken workerTokenInQuery]": httpkit.ForWorkers, "[workerToken]": httpkit.ForWorkers,
	}
	written := map[string]described{}
	for _, op := range load(t).Operations() {
		if op.Method == http.MethodHead {
			continue // HEAD belongs to GET.
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
		Paths map[string]map[string]struct {
			Parameters []struct {
				Name   string
				Schema enum
			}
		}
		Components struct {
			Schemas struct {
				State enum `yaml:"State"`
			}
		}
	}
	if err := yaml.Unmarshal(contract.OpenAPI(), &document); err != nil {
		t.Fatal(err)
	}
	format := document.Paths["/export/{format}"]["post"].Parameters[0]
	if diff := cmp.Diff(limit.Formats(), format.Schema.Enum); diff != "" || format.Name != "format" {
		t.Errorf("got %s (+), want the formats (-):\n%s", format.Name, diff)
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

package export_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/functions/export"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

const body = `{"pi":"` + apitest.PI + `","options":{"recursive":true,"maxDepth":10,"parallelBatchSize":10,"includeOcr":true,"cheimarrosMode":"full"}}`

func setup(t *testing.T) *apitest.Stage {
	t.Helper()
	return apitest.New(t, apitest.NewParts(t), func(s *app.System) []httpkit.Route {
		return export.Routes(s.Requests, delivery.NoWebhooks{})
	})
}

func accepted(t *testing.T, answer apitest.Answer) contract.ExportAccepted {
	t.Helper()
	var a contract.ExportAccepted
	if err := json.Unmarshal([]byte(answer.Body), &a); err != nil {
		t.Fatalf("%s: %v", answer.Body, err)
	}
	return a
}

func problem(t *testing.T, answer apitest.Answer) contract.Problem {
	t.Helper()
	var p contract.Problem
	if err := json.Unmarshal([]byte(answer.Body), &p); err != nil {
		t.Fatalf("%s: %v", answer.Body, err)
	}
	return p
}

func count(t *testing.T, stage *apitest.Stage) int {
	t.Helper()
	runs, _, err := stage.Store.List(t.Context(), apitest.Tenant, port.Page{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return len(runs)
}

func TestPolicyIsAccepted(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	body := `{"pi":"` + apitest.PI + `","policy":{"timeLimitSeconds":120,"heartbeatTimeoutSeconds":10,"retry":{"maxAttempts":1}}}`
	if answer := stage.Call(t, http.MethodPost, "/export/mods", body); answer.Status != http.StatusAccepted {
		t.Fatalf("got %d %s, want 202", answer.Status, answer.Body)
	}
	for policy, field := range map[string]string{
		`{"timeLimit":1}`:                   "policy.timeLimit",
		`{"timeLimitSeconds":"1h"}`:         "policy.timeLimitSeconds",
		`{"timeLimitSeconds":1.5}`:          "policy.timeLimitSeconds",
		`{"timeLimitSeconds":null}`:         "policy.timeLimitSeconds",
		`{"timeLimitSeconds":1209601}`:      "policy.timeLimitSeconds",
		`{"heartbeatTimeoutSeconds":1}`:     "policy.heartbeatTimeoutSeconds",
		`{"retry":{"categories":["MOOD"]}}`: "policy.retry.categories",
		`{"retry":{"jitter":2}}`:            "policy.retry.jitter",
	} {
		answer := stage.Call(t, http.MethodPost, "/export/mods", `{"pi":"`+apitest.PI+`","policy":`+policy+`}`)
		var p contract.Problem
		if err := json.Unmarshal([]byte(answer.Body), &p); err != nil || answer.Status != http.StatusBadRequest || p.Field != field {
			t.Errorf("%s: got %d for %q, want 400 for %q", policy, answer.Status, p.Field, field)
		}
	}
}

func TestAcceptedExportCreatesARun(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	answer := stage.Call(t, http.MethodPost, "/export/mods", body, "X-Correlation-Id", "mine")
	got := accepted(t, answer)
	if answer.Status != http.StatusAccepted || answer.Header.Get("Location") != "/status/"+got.TaskID {
		t.Fatalf("got %d with Location %q, want 202 with Location %q", answer.Status, answer.Header.Get("Location"), "/status/"+got.TaskID)
	}
	if want := "Export job started. Use task_id to check status."; got.Message != want {
		t.Errorf("got message %q, want %q", got.Message, want)
	}
	r := stage.Run(t, got.TaskID)
	if r.State != run.Pending || r.Work.PI != apitest.PI || r.CorrelationID != "mine" {
		t.Errorf("got state %s, PI %s, correlation id %s, want %s, %s and mine", r.State, r.Work.PI, r.CorrelationID, run.Pending, apitest.PI)
	}
	var options contract.ExportOptions
	if err := json.Unmarshal(r.Work.Options, &options); err != nil || !*options.Recursive || *options.MaxDepth != 10 {
		t.Errorf("got options %s, %v, want recursive and maxDepth 10", r.Work.Options, err)
	}
}

func TestRepeatedKeyReturnsTheSameRun(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	first := stage.Call(t, http.MethodPost, "/export/mods", body, "Idempotency-Key", "order 1")
	for range 2 {
		again := stage.Call(t, http.MethodPost, "/export/mods", " "+body, "Idempotency-Key", "order 1")
		if again.Status != http.StatusOK || again.Body != first.Body || again.Header.Get("Location") != first.Header.Get("Location") {
			t.Errorf("got %d %s for a repeated request, want 200 %s", again.Status, again.Body, first.Body)
		}
	}
	other := stage.Call(t, http.MethodPost, "/export/mods", `{"pi":"`+apitest.PI+`"}`, "Idempotency-Key", "order 1")
	if other.Status != http.StatusUnprocessableEntity {
		t.Errorf("got %d for another body with the same key, want 422", other.Status)
	}
	if n := count(t, stage); n != 1 {
		t.Errorf("got %d runs, want 1", n)
	}
}

func TestInvalidRequestsNameTheField(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	pi := `"pi":"` + apitest.PI + `"`
	for _, row := range []struct {
		name, path, body string
		headers          []string
		status           int
		field            string
	}{
		{"no pi", "", `{}`, nil, 400, "pi"},
		{"short pi", "", `{"pi":"01K9"}`, nil, 400, "pi"},
		{"pi in lower case", "", `{"pi":"` + strings.ToLower(apitest.PI) + `"}`, nil, 400, "pi"},
		{"pi is a number", "", `{"pi":5}`, nil, 400, "pi"},
		{"pi is null", "", `{"pi":null}`, nil, 400, "pi"},
		{"unknown field", "", `{` + pi + `,"colour":1}`, nil, 400, "colour"},
		{"field in another case", "", `{"PI":"` + apitest.PI + `"}`, nil, 400, "PI"},
		{"field twice", "", `{` + pi + `,` + pi + `}`, nil, 400, "pi"},
		{"unknown option", "", `{` + pi + `,"options":{"depth":1}}`, nil, 400, "options.depth"},
		{"option of a wrong type", "", `{` + pi + `,"options":{"maxDepth":"10"}}`, nil, 400, "options.maxDepth"},
		{"option with a fraction", "", `{` + pi + `,"options":{"maxDepth":1.5}}`, nil, 400, "options.maxDepth"},
		{"option out of range", "", `{` + pi + `,"options":{"maxDepth":101}}`, nil, 400, "options.maxDepth"},
		{"batch size 0", "", `{` + pi + `,"options":{"parallelBatchSize":0}}`, nil, 400, "options.parallelBatchSize"},
		{"unknown mode", "", `{` + pi + `,"options":{"cheimarrosMode":"most"}}`, nil, 400, "options.cheimarrosMode"},
		{"options are an array", "", `{` + pi + `,"options":[]}`, nil, 400, "options"},
		{"options are null", "", `{` + pi + `,"options":null}`, nil, 400, "options"},
		{"batch id with a newline", "", `{` + pi + `,"batch_id":"a\nb"}`, nil, 400, "batch_id"},
		{"empty batch id", "", `{` + pi + `,"batch_id":""}`, nil, 400, "batch_id"},
		{"empty body", "", "", []string{"Content-Type", "application/json"}, 400, ""},
		{"no JSON", "", `{"pi"`, nil, 400, ""},
		{"an array", "", `[]`, nil, 400, ""},
		{"null", "", `null`, nil, 400, ""},
		{"two objects", "", `{` + pi + `}{}`, nil, 400, ""},
		{"not UTF-8", "", "{\"pi\":\"\xff\"}", nil, 400, ""},
		{"another content type", "", `{` + pi + `}`, []string{"Content-Type", "text/plain"}, 415, "Content-Type"},
		{"no content type", "", `{` + pi + `}`, []string{"Content-Type", ""}, 415, "Content-Type"},
		{"another charset", "", `{` + pi + `}`, []string{"Content-Type", "application/json; charset=latin1"}, 415, "Content-Type"},
		{"compressed", "", `{` + pi + `}`, []string{"Content-Encoding", "gzip"}, 415, "Content-Encoding"},
		{"too long", "", `{` + pi + `,"x":"` + strings.Repeat("x", 1<<20) + `"}`, nil, 413, ""},
		{"key too long", "", `{` + pi + `}`, []string{"Idempotency-Key", strings.Repeat("k", 256)}, 400, "Idempotency-Key"},
		{"key with a special character", "", `{` + pi + `}`, []string{"Idempotency-Key", "ké"}, 400, "Idempotency-Key"},
		{"unknown parameter", "/export/mods?dry=1", `{` + pi + `}`, nil, 400, "dry"},
		{"unknown format", "/export/pdf", `{` + pi + `}`, nil, 404, "format"},
		{"unknown format, bad body", "/export/pdf", `[`, nil, 404, "format"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			path := row.path
			if path == "" {
				path = "/export/mods"
			}
			answer := stage.Call(t, http.MethodPost, path, row.body, row.headers...)
			if p := problem(t, answer); answer.Status != row.status || p.Field != row.field {
				t.Errorf("got %d for %q, want %d for %q: %s", answer.Status, p.Field, row.status, row.field, answer.Body)
			}
		})
	}
}

func TestRefusedRequestWritesNothing(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	stage.Call(t, http.MethodPost, "/export/mods", `{"pi":"`+apitest.PI+`","extra":1}`, "Idempotency-Key", "k")
	if n := count(t, stage); n != 0 {
		t.Fatalf("got %d runs, want none", n)
	}
	if answer := stage.Call(t, http.MethodPost, "/export/mods", body, "Idempotency-Key", "k"); answer.Status != http.StatusAccepted {
		t.Errorf("got %d for the key of a rejected request, want 202", answer.Status)
	}
}

// TestNoEntityAPINoExport refuses exports in a deployment without an entity API. It still
// responds to a repeated request for an export that it had accepted.
func TestNoEntityAPINoExport(t *testing.T) {
	t.Parallel()
	parts := apitest.NewParts(t)
	serve := func(s *app.System) []httpkit.Route {
		return export.Routes(s.Requests, delivery.NoWebhooks{})
	}
	before := apitest.New(t, parts, serve)
	if answer := before.Call(t, http.MethodPost, "/export/mods", body, "Idempotency-Key", "first"); answer.Status != http.StatusAccepted {
		t.Fatalf("got %d %s, want 202", answer.Status, answer.Body)
	}
	stage := apitest.New(t, parts, serve, func(s *apitest.Settings) { s.Service.SourceURL = "" })
	answer := stage.Call(t, http.MethodPost, "/export/mods", body, "Idempotency-Key", "second")
	if p := problem(t, answer); answer.Status != http.StatusUnprocessableEntity || p.Code != "UNPROCESSABLE" || !strings.Contains(p.Detail, "SOURCE_API_URL") {
		t.Errorf("got %d %s, want 422 and what the operator can do", answer.Status, answer.Body)
	}
	if answer := stage.Call(t, http.MethodPost, "/export/mods", body, "Idempotency-Key", "first"); answer.Status != http.StatusOK {
		t.Errorf("known key: got %d %s, want 200", answer.Status, answer.Body)
	}
	if n := count(t, stage); n != 1 {
		t.Errorf("got %d runs, want 1", n)
	}
}

func TestUnknownFormatListsFormats(t *testing.T) {
	t.Parallel()
	p := problem(t, setup(t).Call(t, http.MethodPost, "/export/pdf", body))
	if len(p.Formats) == 0 || p.Formats[0] != "mods" || !strings.Contains(p.Detail, "mods") {
		t.Errorf("got formats %v: %s, want mods in both", p.Formats, p.Detail)
	}
}

// TestExportWithAWebhook creates one webhook for its task. Its secret is shown once.
func TestExportWithAWebhook(t *testing.T) {
	t.Parallel()
	parts := apitest.NewParts(t)
	hooks := apitest.NewWebhooks(t, parts)
	stage := apitest.New(t, parts, func(s *app.System) []httpkit.Route { return export.Routes(s.Requests, hooks) })
	post := func(hook string, status int, headers ...string) (accepted contract.ExportAccepted, problem contract.Problem) {
		t.Helper()
		answer := stage.Call(t, "POST", "/export/mods", `{"pi": "`+apitest.PI+`", "webhook": `+hook+`}`, headers...)
		if answer.Status != status {
			t.Fatalf("%s: got %d %s, want %d", hook, answer.Status, answer.Body, status)
		}
		into := any(&accepted)
		if status >= 300 {
			into = &problem
		}
		if err := json.Unmarshal([]byte(answer.Body), into); err != nil {
			t.Fatal(err)
		}
		return accepted, problem
	}
	const hook = `{"url": "https://127.0.0.1:1/", "eventTypes": ["job.*"]}`
	first, _ := post(hook, 202, "Idempotency-Key", "k")
	again, _ := post(hook, 200, "Idempotency-Key", "k")
	if first.Webhook == nil || again.Webhook == nil || again.TaskID != first.TaskID || again.Webhook.ID != first.Webhook.ID || first.Webhook.Secret == "" || again.Webhook.Secret != "" {
		t.Errorf("got %+v, then %+v, want one webhook, and its secret once", first.Webhook, again.Webhook)
	}
	who := port.Identity{Tenant: apitest.Tenant}
	v, err := hooks.Webhook(t.Context(), who, first.Webhook.ID)
	if err != nil || v.TaskID != first.TaskID || v.Filter.TaskID != first.TaskID || v.Filter.Types[0] != "job.*" {
		t.Errorf("got %+v, %v, want a webhook of the task", v, err)
	}
	if _, p := post(`{"url": "https://127.0.0.1:2/"}`, 422, "Idempotency-Key", "k"); p.Code != "IDEMPOTENCY_MISMATCH" {
		t.Errorf("got %+v for another webhook, want IDEMPOTENCY_MISMATCH", p)
	}
	for hook, want := range map[string]string{
		`{"url": "https://10.0.0.1/"}`: "422 webhook.url", `{}`: "400 webhook.url", `{"url": "https://127.0.0.1/", "eventTypes": ["x"]}`: "400 webhook.eventTypes",
		`{"url": "https://127.0.0.1/", "secret": "x"}`: "400 webhook.secret", `7`: "400 webhook",
	} {
		var status int
		var field string
		if _, err := fmt.Sscan(want, &status, &field); err != nil {
			t.Fatal(err)
		}
		if _, p := post(hook, status); p.Field != field {
			t.Errorf("%s: got field %q, want %s", hook, p.Field, field)
		}
	}
	page := port.Page{Limit: 100}
	runs, _, err := parts.Store.List(t.Context(), apitest.Tenant, page)
	found, _, listErr := hooks.List(t.Context(), who, page)
	if err != nil || listErr != nil || len(runs) != 1 || len(found) != 1 {
		t.Errorf("got %d runs and %d webhooks, %v, %v, want one of each", len(runs), len(found), err, listErr)
	}
}

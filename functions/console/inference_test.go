package console_test

import (
	"context"
	"encoding/json"
	"html"
	"log/slog"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/functions/activity"
	"github.com/sortie-dev/sortie/functions/inference"
	"github.com/sortie-dev/sortie/functions/registry"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/local/proof/port/sqlitetest"
	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/app"
	figures "github.com/sortie-dev/sortie/shared/app/activity"
	"github.com/sortie-dev/sortie/shared/app/inferences"
	domain "github.com/sortie-dev/sortie/shared/domain/activity"
	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"

	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// setupInference is like setup, with a pool of a mock engine and its dispatcher.
func setupInference(t *testing.T) *home {
	t.Helper()
	h := setupWith(t, func(parts apitest.Parts) app.SystemTasks {
		db, err := sqlitetest.Open(t.Context(), filepath.Join(sqlitetest.Folder(t), "feed.db"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		feed, err := sqlite.NewFeed(t.Context(), db, sqlite.FeedConfig{Clock: parts.Clock, Retention: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		engine := mockengine.New(mockengine.Config{Clock: parts.Clock})
		return app.ServeTasks(feed, func(string, platform.EnginePlace, platform.EngineReplica) (port.Engine, error) { return engine, nil },
			inferences.DispatcherConfig{ID: "dispatcher", Alone: true})
	}, func(parts apitest.Parts, s *app.System) []httpkit.Route {
		return slices.Concat(
			registry.CatalogRoutes(s.Models), inference.Routes(s.Inference, parts.Clock), inference.BudgetRoutes(s.Budgets, parts.Clock),
			activity.Routes(figures.NewTally(parts.Store, fake.NewFeed(parts.Clock, time.Hour, nil, func(err error) { t.Error(err) }), parts.Clock, slog.New(slog.DiscardHandler))),
		)
	})
	place := platform.EnginePlace{Kind: platform.EngineMock, Model: "mock", Slots: 1, Replicas: make([]platform.EngineReplica, 1)}.WithIDs()
	pool := platform.Pool{Tenant: apitest.Tenant, ID: "pool0", Limit: 1, QueueLimit: 1, Engine: &place, CreatedAt: apitest.Began, UpdatedAt: apitest.Began}
	if err := h.Store.SavePool(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	if answer := h.Call(t, http.MethodPost, "/v1/catalog/models", `{"id":"mock","engines":["mock"],"engine_model":"mock","context_tokens":1000}`, "Authorization", "Bearer "+ownerToken); answer.Status != http.StatusCreated {
		t.Fatalf("got %d %s, want a model", answer.Status, answer.Body)
	}
	ctx, stop := context.WithCancel(t.Context())
	dispatcher := h.System.Dispatcher
	var running sync.WaitGroup
	running.Go(func() { dispatcher.Run(ctx) })
	<-dispatcher.Ready()
	t.Cleanup(func() { stop(); running.Wait() })
	return h
}

var taskID = regexp.MustCompile(`inf_[0-9A-Z]{26}`)

// TestPlaygroundShowsTheWholeAnswer asks without JavaScript.
func TestPlaygroundShowsTheWholeAnswer(t *testing.T) {
	t.Parallel()
	h := setupInference(t)
	b := h.signedIn(t, ownerToken)
	text := b.page("/console/inference/playground?model=mock", "<option selected>mock</option>", `data-ask`)
	key := regexp.MustCompile(`name="key" value="([^"]+)"`).FindStringSubmatch(text)[1]
	const prompt = `say <script>alert(1)</script>`
	var id string
	for range 2 { // a form that is sent twice
		answer := b.post("/console/inference/playground", "model", "mock", "prompt", prompt, "max_tokens", "7", "temperature", "0.5", "session", "talk-1", "system", "Be short", "key", key)
		if answer.Status != http.StatusOK || strings.Contains(answer.Body, "<script>alert") || !strings.Contains(answer.Body, "7 tokens from ") || !strings.Contains(answer.Body, "&lt;script&gt;") || strings.Contains(answer.Body, "data-stream=") {
			t.Fatalf("got %d %s, want the answer", answer.Status, mainPart(answer.Body))
		}
		found := taskID.FindString(answer.Body)
		if found == "" || id != "" && found != id {
			t.Errorf("got the task %q after %q, want one task", found, id)
		}
		id = found
	}
	b.page("/console/inference/playground?task="+id, "7 tokens from ", `href="../inference/sessions/talk-1"`)
	b.page("/console/inference", "pool0", "mock", "Ready", id, "talk-1", "project:main", "no limit", "Tokens in the last day", "tokens of 1 tasks")
	for field, value := range map[string]string{"max_tokens": "x", "temperature": "NaN"} {
		fields := map[string]string{"model": "mock", "prompt": "a", "max_tokens": "7"}
		fields[field] = value
		var list []string
		for name, text := range fields {
			list = append(list, name, text)
		}
		if answer := b.post("/console/inference/playground", list...); answer.Status < 400 || answer.Status > 499 {
			t.Errorf("%s=%s: got %d %s, want a refusal", field, value, answer.Status, mainPart(answer.Body))
		}
	}
}

// TestRefusedQuestionIsKept asks a model that no pool serves.
func TestRefusedQuestionIsKept(t *testing.T) {
	t.Parallel()
	h := setupInference(t)
	b := h.signedIn(t, ownerToken)
	b.page("/console/inference/playground")
	answer := b.post("/console/inference/playground", "model", `no<b>ne`, "prompt", "a long prompt")
	if answer.Status != http.StatusOK || !strings.Contains(answer.Body, `role="alert"`) || !strings.Contains(answer.Body, "a long prompt</textarea>") || strings.Contains(answer.Body, "no<b>ne") {
		t.Errorf("got %d %s, want the form with the refusal", answer.Status, mainPart(answer.Body))
	}
}

// TestPlaygroundStreams asks as the module of the page does, and follows the answer.
func TestPlaygroundStreams(t *testing.T) {
	t.Parallel()
	h := setupInference(t)
	b := h.signedIn(t, ownerToken)
	b.page("/console/inference/playground")
	answer := b.post("/console/inference/playground", "model", "mock", "prompt", "a", "max_tokens", "5", "live", "1")
	id := taskID.FindString(answer.Body)
	if answer.Status != http.StatusOK || !strings.Contains(answer.Body, `data-stream="../json/v1/tasks/`+id+`/stream"`) || !strings.Contains(answer.Body, "/runs/"+id+"/cancel") {
		t.Fatalf("got %d %s, want a page that follows the answer", answer.Status, mainPart(answer.Body))
	}
	streamed := b.send(http.MethodGet, "/console/json/v1/tasks/"+id+"/stream", "", "Accept", "text/event-stream")
	if streamed.Status != http.StatusOK || strings.Count(streamed.Body, "event: token\n") == 0 || !strings.Contains(streamed.Body, "event: end\n") {
		t.Errorf("got %d %s, want the answer", streamed.Status, streamed.Body)
	}
}

func TestBudgetsAndSessionsAreChanged(t *testing.T) {
	t.Parallel()
	h := setupInference(t)
	b := h.signedIn(t, ownerToken)
	b.page("/console/inference")
	if answer := b.post("/console/inference/budget", "scope", "tenant", "tokens", "100", "turns", ""); answer.Header.Get("Location") != "/console/inference?done=budget" {
		t.Fatalf("got %d %s, want the page", answer.Status, answer.Body)
	}
	b.post("/console/inference/playground", "model", "mock", "prompt", "a", "max_tokens", "5", "session", "talk-1")
	b.page("/console/inference?done=budget", "The limits of the budget are stored", `<td class="num">100</td>`, "<meter")
	if answer := b.post("/console/inference/budget", "scope", "tenant", "tokens", "many"); answer.Status != http.StatusBadRequest {
		t.Errorf("got %d, want 400", answer.Status)
	}
	b.page("/console/inference/sessions/talk-1", "session:talk-1", "Close the session")
	if answer := b.post("/console/inference/sessions/talk-1/close"); answer.Header.Get("Location") != "/console/inference?done=session" {
		t.Errorf("got %d %s, want the page", answer.Status, answer.Body)
	}
	if answer := b.get("/console/inference/sessions/talk-1"); answer.Status != http.StatusNotFound {
		t.Errorf("got %d of a closed session, want 404", answer.Status)
	}
}

func TestInferenceNeedsItsScopesAndTenant(t *testing.T) {
	t.Parallel()
	h := setupInference(t)
	b := h.signedIn(t, ownerToken)
	b.page("/console/inference/playground")
	id := taskID.FindString(b.post("/console/inference/playground", "model", "mock", "prompt", "a", "max_tokens", "5", "session", "s").Body)
	reader := h.signedIn(t, readerToken)
	for _, path := range []string{"/console/inference", "/console/inference/playground", "/console/inference/sessions/s"} {
		text := reader.page(path)
		for _, action := range []string{"data-ask", "inference/budget\"", "/close\""} {
			if strings.Contains(text, action) {
				t.Errorf("%s: got the action %s for a reader", path, action)
			}
		}
	}
	for _, path := range []string{"playground", "budget", "sessions/s/close"} {
		if answer := reader.post("/console/inference/"+path, "scope", "tenant", "tokens", "1", "model", "mock", "prompt", "a"); answer.Status != http.StatusForbidden {
			t.Errorf("%s: got %d for a reader, want 403", path, answer.Status)
		}
	}
	other := h.signedIn(t, otherToken)
	if text := other.page("/console/inference"); strings.Contains(text, id) || strings.Contains(text, "pool0") {
		t.Error("got a task or a pool of another tenant")
	}
	for _, path := range []string{"/console/inference/playground?task=" + id, "/console/inference/sessions/s", "/console/json/v1/tasks/" + id + "/stream"} {
		if answer := other.get(path); answer.Status != http.StatusNotFound {
			t.Errorf("%s: got %d of another tenant, want 404", path, answer.Status)
		}
	}
	if answer := other.post("/console/inference/sessions/s/close"); answer.Status != http.StatusNotFound {
		t.Errorf("got %d of another tenant, want 404", answer.Status)
	}
}

// TestInferenceShowsTheUseOfTheBudget has what the budget had spent in two hours.
func TestInferenceShowsTheUseOfTheBudget(t *testing.T) {
	t.Parallel()
	h := setupInference(t)
	h.Clock.Advance(2 * time.Hour)
	w, ok := domain.WindowOf("24h")
	if !ok {
		t.Fatal("got no window of a day")
	}
	var save []port.Resource
	for i, start := range w.Starts(h.Clock.Now())[w.Slots-2:] {
		document, err := json.Marshal(domain.Slot{From: start, Spent: &budget.Amount{Turns: int64(i + 3), Tokens: 500, CostNano: int64(i+1) * 1_500_000_000}})
		if err != nil {
			t.Fatal(err)
		}
		save = append(save, port.Resource{ResourceRef: port.ResourceRef{Tenant: apitest.Tenant, Kind: "activity", ID: w.Key(start)}, CreatedAt: start, Document: document})
	}
	if err := h.Store.WriteResources(t.Context(), save, nil); err != nil {
		t.Fatal(err)
	}
	h.signedIn(t, ownerToken).page("/console/inference", "Use of the budget of the tenant in the last day", "$1.5</td>", "$3</td>", ">500</td>", "<polyline")
	h.signedIn(t, otherToken).page("/console/inference")
}

// TestUsageIsReported shows the usage of three tasks, and downloads it.
func TestUsageIsReported(t *testing.T) {
	t.Parallel()
	h := setupInference(t)
	b := h.signedIn(t, ownerToken)
	if text := b.page("/console/inference/usage"); !strings.Contains(text, "No inference task has used anything") {
		t.Errorf("got %s, want an empty report", text)
	}
	g := run.Generation{TokensIn: 50, CachedTokens: 40, TokensOut: 3, DecodeMS: 20, Finish: "stop"}
	h.Charge(t, apitest.Tenant, "m", "alice", "talk", g, h.Clock.Now())
	h.Charge(t, apitest.Tenant, "m", "bob<b>", "", g, h.Clock.Now())
	h.Charge(t, apitest.Tenant, "old", "alice", "", g, h.Clock.Now().Add(-20*24*time.Hour))
	h.Charge(t, "other", "secret", "mallory", "", g, h.Clock.Now())
	text := b.page("/console/inference/usage")
	for _, want := range []string{"3 tasks, 150 tokens of prompts, 120 of them cached, 9 generated", "alice", "bob&lt;b&gt;", "old", "talk", "without a session"} {
		if !strings.Contains(text, want) {
			t.Errorf("got %s, want %q", text, want)
		}
	}
	if strings.Contains(text, "mallory") || strings.Contains(text, "secret") {
		t.Errorf("got %s, want nothing of another tenant", text)
	}
	if text := b.page("/console/inference/usage?days=7"); strings.Contains(text, ">old<") || !strings.Contains(text, "2 tasks") {
		t.Errorf("got %s, want seven days", text)
	}
	sheet := regexp.MustCompile(`href="([^"]*as=csv[^"]*)"`).FindStringSubmatch(text)
	if sheet == nil {
		t.Fatal("the page has no link to the CSV")
	}
	answer := b.get("/console/" + strings.TrimPrefix(html.UnescapeString(sheet[1]), "../"))
	if lines := strings.Count(answer.Body, "\r\n"); lines != 4 || !strings.HasPrefix(answer.Body, "day,model,key,session,tasks") {
		t.Errorf("got %+v, want a header and three rows", answer)
	}
}

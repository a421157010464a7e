package console_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sortie-dev/sortie/functions/callback"
	"github.com/sortie-dev/sortie/functions/console"
	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/session"
	"github.com/sortie-dev/sortie/functions/control"
	"github.com/sortie-dev/sortie/functions/download"
	"github.com/sortie-dev/sortie/functions/jobs"
	"github.com/sortie-dev/sortie/functions/registry"
	"github.com/sortie-dev/sortie/functions/runs"
	"github.com/sortie-dev/sortie/functions/tasks"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/shared/adapter/tokenfile"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// The tokens of the tests: all scopes, only runs:read, and all scopes in another tenant.
const (
	ownerToken  = "token-of-the-owner"
	readerToken = "token-of-a-reader"
	otherToken  = "token-of-another-tenant"
)

// tokens is a source whose tokens can be revoked. file replaces records, unless it is nil.
type tokens struct {
	mu      sync.Mutex
	records []access.Token
	file    *tokenfile.File
}

func (s *tokens) Current(ctx context.Context) ([]access.Token, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file != nil {
		return s.file.Current(ctx)
	}
	return slices.Clone(s.records), true, nil
}
func (*tokens) Refused() {}

// store moves the records to a file, as on one host.
func (s *tokens) store(t *testing.T, c clock.Clock) (path string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	path = filepath.Join(t.TempDir(), "tokens.json")
	err := tokenfile.Update(path, func([]access.Token) ([]access.Token, error) { return s.records, nil })
	if err == nil {
		s.file, err = tokenfile.Open(path, c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func (s *tokens) revoke(t *testing.T, name string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	left, err := access.Revoke(s.records, name)
	if err != nil {
		t.Fatal(err)
	}
	s.records = left
}

// home is a server with the API and the console.
type home struct {
	*apitest.Stage
	tokens *tokens
	reads  *counter
	calls  *calls
}

// calls counts the requests of the console to the API.
type calls struct {
	http.RoundTripper
	made atomic.Int64
}

func (c *calls) RoundTrip(r *http.Request) (*http.Response, error) {
	c.made.Add(1)
	return c.RoundTripper.RoundTrip(r)
}

// counter counts the reads of records.
type counter struct {
	port.ResourceStore
	mu    sync.Mutex
	loads int
}

func (c *counter) LoadResource(ctx context.Context, ref port.ResourceRef) (port.Resource, error) {
	c.mu.Lock()
	c.loads++
	c.mu.Unlock()
	return c.ResourceStore.LoadResource(ctx, ref)
}

func (c *counter) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.loads
}

// part returns further routes of the API for a test.
type part func(apitest.Parts, *app.System) []httpkit.Route

func setup(t *testing.T, more ...part) *home {
	t.Helper()
	return setupWith(t, func(apitest.Parts) app.SystemTasks { return app.NoTasks() }, more...)
}

// setupWith is like setup with inference tasks.
func setupWith(t *testing.T, tasksOf func(apitest.Parts) app.SystemTasks, more ...part) *home {
	t.Helper()
	reader := access.Full("reader", readerToken, apitest.Tenant, "main")
	reader.Scopes = []access.Scope{access.RunsRead}
	source := &tokens{records: []access.Token{
		access.Full("owner", ownerToken, apitest.Tenant, "main"), reader, access.Full("other", otherToken, "other", "main"),
	}}
	parts := apitest.NewParts(t)
	h := &home{tokens: source, reads: &counter{ResourceStore: parts.Store}}
	h.calls = &calls{RoundTripper: page.InProcess(func() http.Handler { return h.Server.Config.Handler })}
	h.Stage = apitest.New(t, parts, func(s *app.System) []httpkit.Route {
		var further []httpkit.Route
		for _, each := range more {
			further = append(further, each(parts, s)...)
		}
		return slices.Concat(
			further, runs.Routes(s.Definitions, s.Explanations), runs.ChildRoutes(s.Children), jobs.Routes(s.Jobs, s.Queries, s.Explanations), control.Routes(s.Pools), callback.Routes(s.Workers, s.Intake), download.Routes(s.Downloads), registry.Routes(s.Artifacts),
			tasks.Routes(s.Queries, s.Runs, s.Logs, tasks.Keys{Tokens: parts.Signer, Events: fake.NewEventKeys(nil)}, ""),
			tasks.RedeliveryRoutes(s.Queries, s.Redeliveries),
			console.Routes(page.Config{
				Sessions: session.NewSessions(h.reads, source, parts.Clock, rand.Reader), Clock: parts.Clock, Version: "1",
				API: h.calls, URL: "http://127.0.0.1",
				Settings: []page.Setting{{Name: "SORTIE_REGION", Value: "ord <b>"}},
			}),
		)
	}, func(s *apitest.Settings) {
		s.Unchecked = true // pages are not in the OpenAPI document
		s.Service.Host.Exec = true
		s.Tasks = tasksOf(parts)
		s.Server.Tokens = source
	})
	return h
}

// browser is a client with cookies, as a browser keeps them.
type browser struct {
	*home
	t       *testing.T
	cookies map[string]string
	// form is the token of the forms of the last page.
	form string
}

func (h *home) browser(t *testing.T) *browser {
	return &browser{home: h, t: t, cookies: map[string]string{}}
}

var formField = regexp.MustCompile(`name="form" value="([^"]*)"`)

// send sends a request with the browser's cookies and stores those of the response.
func (b *browser) send(method, path, body string, headers ...string) apitest.Answer {
	b.t.Helper()
	var cookies []string
	for name, value := range b.cookies {
		cookies = append(cookies, name+"="+value)
	}
	slices.Sort(cookies)
	answer := b.Call(b.t, method, path, body, append([]string{"Cookie", strings.Join(cookies, "; "), "Accept", "text/html"}, headers...)...)
	for _, line := range answer.Header.Values("Set-Cookie") {
		c, err := http.ParseSetCookie(line)
		if err != nil {
			b.t.Fatal(err)
		}
		if b.cookies[c.Name] = c.Value; c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		}
	}
	if found := formField.FindStringSubmatch(answer.Body); found != nil {
		b.form = html.UnescapeString(found[1])
	}
	return answer
}

// get reads a page.
func (b *browser) get(path string) apitest.Answer {
	b.t.Helper()
	return b.send(http.MethodGet, path, "")
}

// post sends a form of the last page.
func (b *browser) post(path string, fields ...string) apitest.Answer {
	b.t.Helper()
	return b.submit(path, b.form, []string{"Origin", b.URL, "Sec-Fetch-Site", "same-origin"}, fields...)
}

func (b *browser) submit(path, form string, headers []string, fields ...string) apitest.Answer {
	b.t.Helper()
	values := url.Values{}
	if form != "" {
		values.Set("form", form)
	}
	for i := 0; i < len(fields); i += 2 {
		values.Set(fields[i], fields[i+1])
	}
	return b.send(http.MethodPost, path, values.Encode(), append([]string{"Content-Type", "application/x-www-form-urlencoded"}, headers...)...)
}

// signedIn returns a browser that has signed in with a token.
func (h *home) signedIn(t *testing.T, token string) *browser {
	t.Helper()
	b := h.browser(t)
	b.get("/console/sign-in")
	if answer := b.post("/console/sign-in", "token", token); answer.Status != http.StatusSeeOther || answer.Header.Get("Location") != "/console/overview" {
		t.Fatalf("got %d %s to %q, want a sign-in", answer.Status, answer.Body, answer.Header.Get("Location"))
	}
	return b
}

// page reads a page and requires that it has the texts.
func (b *browser) page(path string, want ...string) string {
	b.t.Helper()
	answer := b.get(path)
	if answer.Status != http.StatusOK {
		b.t.Fatalf("%s: got %d %s, want 200", path, answer.Status, answer.Body)
	}
	for _, text := range want {
		if !strings.Contains(answer.Body, text) {
			b.t.Errorf("%s: got no %q in %s", path, text, mainPart(answer.Body))
		}
	}
	return answer.Body
}

// program starts a run of a program and returns its id.
func (h *home) program(t *testing.T, body string) string {
	t.Helper()
	answer := h.Call(t, http.MethodPost, "/v1/runs", body, "Authorization", "Bearer "+ownerToken)
	if answer.Status != http.StatusAccepted {
		t.Fatalf("got %d %s, want 202", answer.Status, answer.Body)
	}
	var id string
	if _, err := fmt.Sscanf(answer.Body, `{"taskId":%q`, &id); err != nil {
		t.Fatal(err)
	}
	return id
}

// mainPart returns a page without its head, for messages.
func mainPart(page string) string {
	_, after, _ := strings.Cut(page, "<main")
	return after
}

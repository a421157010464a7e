package console_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/functions/console"
	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/session"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func TestRootSendsBrowsersToTheConsole(t *testing.T) {
	t.Parallel()
	b := setup(t).browser(t)
	for path, want := range map[string]string{"/": "/console/overview", "/console": "/console/overview", "/console/": "/console/overview"} {
		if answer := b.get(path); answer.Status != http.StatusSeeOther || answer.Header.Get("Location") != want {
			t.Errorf("%s: got %d to %q, want 303 to %s", path, answer.Status, answer.Header.Get("Location"), want)
		}
	}
	if answer := b.Call(t, http.MethodGet, "/", "", "Accept", "application/json"); answer.Status != http.StatusNotFound || !strings.Contains(answer.Body, `"NOT_FOUND"`) {
		t.Errorf("got %d %s, want the problem of the API", answer.Status, answer.Body)
	}
}

// TestEveryAddressNeedsASession requests every route without a session, and with cookies that
// open nothing.
func TestEveryAddressNeedsASession(t *testing.T) {
	t.Parallel()
	h := setup(t)
	open := map[string]bool{
		"GET /{$}": true, "GET /console": true, "GET /console/{$}": true, "GET /console/static/{name}": true, "GET /console/sign-in": true, "POST /console/sign-in": true,
		"POST /console/sign-out": true, "GET /console/ticket": true, "POST /console/ticket": true, "GET /console/{path...}": true,
		"GET /console/docs": true, "GET /console/docs/{$}": true, "GET /console/docs/{name}": true, // the documents of the repository
	}
	_, secret, _ := strings.Cut(h.signedIn(t, ownerToken).cookies["sortie_console_"+portOf(h)], ".")
	for name, cookie := range map[string]string{
		"no cookie": "", "empty": "default.", "another tenant": "other." + secret, "another secret": apitest.Tenant + "." + strings.Repeat("A", 43),
		"padded": apitest.Tenant + "." + secret + "=", "long": strings.Repeat("a", 5000) + "." + secret, "a path": "../" + apitest.Tenant + "." + secret,
	} {
		for _, route := range console.Routes(page.Config{}) {
			if open[route.Method+" "+route.Pattern] {
				continue
			}
			b := h.browser(t)
			b.get("/console/sign-in")
			if cookie != "" {
				b.cookies["sortie_console_"+portOf(h)] = cookie
			}
			path := strings.NewReplacer("{run_id}", "one", "{path...}", "v1/runs").Replace(route.Pattern)
			answer := b.send(route.Method, path, "")
			switch {
			case route.Pattern == "/console/stream": // an event source cannot follow a redirect
				if answer.Status != http.StatusNoContent || answer.Body != "" {
					t.Errorf("%s: GET %s: got %d %q, want 204", name, path, answer.Status, answer.Body)
				}
			case route.Method == http.MethodGet:
				if to := answer.Header.Get("Location"); answer.Status != http.StatusSeeOther || !strings.HasPrefix(to, "/console/sign-in?next=") {
					t.Errorf("%s: GET %s: got %d to %q, want the sign-in", name, path, answer.Status, to)
				}
			case answer.Status != http.StatusForbidden && answer.Status != http.StatusUnauthorized:
				t.Errorf("%s: POST %s: got %d %s, want 403 or 401", name, path, answer.Status, answer.Body)
			}
		}
	}
}

// portOf returns the port of the server, which is in the names of the cookies.
func portOf(h *home) string {
	u, _ := url.Parse(h.URL)
	return u.Port()
}

func TestEveryResponseIsProtected(t *testing.T) {
	t.Parallel()
	h := setup(t)
	b := h.signedIn(t, ownerToken)
	for _, path := range []string{"/console/runs", "/console/runs/none", "/console/none", "/console/sign-in", "/console/static/style.css", "/console/runs?none=1", "/console/ticket?ticket=x", "/console/json/v1/runs"} {
		answer := b.get(path)
		policy := answer.Header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") || answer.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: got policy %q and %v", path, policy, answer.Header)
		}
		if policy := answer.Header.Get("Referrer-Policy"); policy != "same-origin" && policy != "strict-origin" {
			t.Errorf("%s: got Referrer-Policy %q", path, policy)
		}
		for _, inline := range []string{"<script>", " style=", " onclick", "javascript:"} {
			if strings.Contains(answer.Body, inline) && strings.Contains(answer.Header.Get("Content-Type"), "html") {
				t.Errorf("%s: got %s in the page, which its policy refuses", path, inline)
			}
		}
	}
}

func TestFormsOfOtherPagesAreRefused(t *testing.T) {
	t.Parallel()
	h := setup(t)
	id := h.program(t, `{"image":"a"}`)
	stranger := h.signedIn(t, otherToken)
	stranger.get("/console/runs")
	for name, row := range map[string]struct {
		form    string
		headers []string
	}{
		"no origin":                   {"own", nil},
		"null origin":                 {"own", []string{"Origin", "null"}},
		"null origin, same site":      {"own", []string{"Origin", "null", "Sec-Fetch-Site", "same-origin"}},
		"foreign origin":              {"own", []string{"Origin", "https://evil.example"}},
		"another port":                {"own", []string{"Origin", "http://127.0.0.1:1"}},
		"cross-site":                  {"own", []string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}},
		"same-site":                   {"own", []string{"Sec-Fetch-Site", "same-site"}},
		"no token":                    {"", []string{"Origin", h.URL, "Sec-Fetch-Site", "same-origin"}},
		"token of another session":    {stranger.form, []string{"Origin", h.URL, "Sec-Fetch-Site", "same-origin"}},
		"the session's key as token":  {"key", []string{"Origin", h.URL, "Sec-Fetch-Site", "same-origin"}},
		"a type of a simple request":  {"own", []string{"Origin", h.URL, "Content-Type", "text/plain"}},
		"a type of JSON":              {"own", []string{"Origin", h.URL, "Content-Type", "application/json"}},
		"a type of a multipart form ": {"own", []string{"Origin", h.URL, "Content-Type", "multipart/form-data; boundary=x"}},
	} {
		b := h.signedIn(t, ownerToken)
		b.page("/console/runs/" + id)
		form := row.form
		switch form {
		case "own":
			form = b.form
		case "key":
			form = b.cookies["sortie_console_"+portOf(h)]
		}
		for _, path := range []string{"/console/runs/" + id + "/cancel", "/console/runs/" + id + "/rerun", "/console/runs/" + id + "/pin", "/console/runs/" + id + "/redeliver", "/console/sign-out", "/console/sign-in", "/console/ticket"} {
			if answer := b.submit(path, form, row.headers, "token", otherToken); answer.Status != http.StatusForbidden || len(answer.Header.Values("Set-Cookie")) > 0 {
				t.Errorf("%s: %s: got %d %s, want 403", name, path, answer.Status, answer.Body)
			}
		}
		if b.get("/console/runs").Status != http.StatusOK {
			t.Errorf("%s: got a browser that is signed out", name)
		}
	}
	if r := h.Run(t, id); r.Cancel != nil || r.Pin != nil {
		t.Error("got a cancel request or a pin of another page")
	}
	b := h.signedIn(t, ownerToken)
	b.page("/console/runs/" + id)
	if answer := b.submit("/console/runs/"+id+"/cancel", b.form, []string{"Origin", h.URL}); answer.Status != http.StatusSeeOther {
		t.Errorf("an old browser without Sec-Fetch-Site: got %d %s, want 303", answer.Status, answer.Body)
	}
}

func TestForeignHostIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t).signedIn(t, ownerToken)
	for _, host := range []string{"evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80"} {
		for _, path := range []string{"/", "/console/runs", "/console/sign-in", "/console/static/style.css"} {
			if answer := b.send(http.MethodGet, path, "", "Host", host); answer.Status != http.StatusForbidden {
				t.Errorf("%s%s: got %d, want 403", host, path, answer.Status)
			}
		}
	}
}

func TestSignInReturnsOnlyToTheConsole(t *testing.T) {
	t.Parallel()
	h := setup(t)
	for next, want := range map[string]string{
		"/console/runs?state=Failed": "/console/runs?state=Failed", "/console/runs/a%2Fb": "/console/runs/a%2Fb", "": "/console/overview",
		"https://evil.example/console/": "/console/overview", "//evil.example/console/runs": "/console/overview", `/\evil.example`: "/console/overview",
		`/console/\evil`: "/console/overview", "/console/..//evil.example": "/console/overview", "/console/../v1/runs": "/console/overview",
		"javascript:alert(1)": "/console/overview", "/v1/runs": "/console/overview", "/console/runs\r\nX: y": "/console/overview",
	} {
		b := h.browser(t)
		b.get("/console/sign-in")
		answer := b.post("/console/sign-in", "token", ownerToken, "next", next)
		if got := answer.Header.Get("Location"); answer.Status != http.StatusSeeOther || got != want {
			t.Errorf("%q: got %d to %q, want 303 to %s", next, answer.Status, got, want)
		}
	}
}

func TestCookieIsOpaqueAndProtected(t *testing.T) {
	t.Parallel()
	h := setup(t)
	b := h.browser(t)
	b.get("/console/sign-in")
	answer := b.post("/console/sign-in", "token", ownerToken)
	line := answer.Header.Values("Set-Cookie")[0]
	c, err := http.ParseSetCookie(line)
	if err != nil || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Secure || c.Path != "" || c.MaxAge != int(session.SessionLife.Seconds()) {
		t.Errorf("got %s, want a protected cookie of 12 hours", line)
	}
	for _, secret := range []string{ownerToken, "owner"} {
		if strings.Contains(line, secret) {
			t.Errorf("got %q in the cookie %s", secret, line)
		}
	}
	other := b.submit("/console/sign-in", "", []string{"Host", "sortie.example", "Origin", "https://sortie.example"})
	if other.Status != http.StatusForbidden {
		t.Errorf("another host: got %d, want 403", other.Status)
	}
	if strings.Contains(h.Logs(), ownerToken) || strings.Contains(h.Logs(), b.cookies[c.Name]) {
		t.Error("got a secret in the log")
	}
}

func TestWrongTokenIsRefused(t *testing.T) {
	t.Parallel()
	h := setup(t)
	for _, token := range []string{"", "wrong", ownerToken + "x", strings.Repeat("x", 10_000)} {
		b := h.browser(t)
		b.get("/console/sign-in")
		answer := b.post("/console/sign-in", "token", token)
		if answer.Status != http.StatusUnauthorized || !strings.Contains(answer.Body, "unknown, was revoked or has expired") || strings.Contains(answer.Body, token) && token != "" {
			t.Errorf("got %d %s, want 401 without the token", answer.Status, answer.Body)
		}
	}
}

func TestSessionEnds(t *testing.T) {
	t.Parallel()
	signedOut := func(b *browser) bool { return b.get("/console/runs").Status == http.StatusSeeOther }
	for name, end := range map[string]func(*home, *browser){
		"sign-out":   func(_ *home, b *browser) { b.post("/console/sign-out") },
		"revocation": func(h *home, b *browser) { h.tokens.revoke(b.t, "owner") },
		"time":       func(h *home, _ *browser) { h.Clock.Advance(session.SessionLife) },
		"a new sign-in": func(_ *home, b *browser) {
			copied := b.cookies["sortie_console_"+portOf(b.home)]
			b.page("/console/runs")
			b.post("/console/sign-in", "token", readerToken)
			b.cookies["sortie_console_"+portOf(b.home)] = copied
		},
	} {
		h := setup(t)
		b, another := h.signedIn(t, ownerToken), h.signedIn(t, readerToken)
		copied := b.cookies["sortie_console_"+portOf(h)]
		b.page("/console/runs")
		if end(h, b); !signedOut(b) {
			t.Errorf("%s: got an open session", name)
		}
		b.cookies["sortie_console_"+portOf(h)] = copied
		if !signedOut(b) {
			t.Errorf("%s: got a session for a copy of the cookie", name)
		}
		if name != "time" && signedOut(another) {
			t.Errorf("%s: got the end of another session", name)
		}
	}
}

func TestTicketSignsInOnce(t *testing.T) {
	t.Parallel()
	h := setup(t)
	for _, headers := range [][]string{nil, {"Authorization", "Bearer wrong-token-of-some"}, {"Authorization", "Basic x"}} {
		if answer := h.Call(t, http.MethodPost, "/console/tickets", "", headers...); answer.Status != http.StatusUnauthorized {
			t.Errorf("%q: got %d, want 401", headers, answer.Status)
		}
	}
	answer := h.Call(t, http.MethodPost, "/console/tickets", "", "Authorization", "Bearer "+ownerToken)
	var ticket contract.ConsoleTicket
	if err := json.Unmarshal([]byte(answer.Body), &ticket); err != nil || answer.Status != http.StatusCreated || !ticket.ExpiresAt.Equal(apitest.Began.Add(session.TicketLife)) {
		t.Fatalf("got %d %s, want a ticket of 10 minutes", answer.Status, answer.Body)
	}
	_, key, _ := strings.Cut(ticket.Path, "ticket=")
	first, second := h.browser(t), h.browser(t)
	for range 3 { // previews of links
		first.page(ticket.Path, "Sign in as owner", "tenant <b>"+apitest.Tenant)
		second.page(ticket.Path)
	}
	if first.get("/console/runs").Status != http.StatusSeeOther {
		t.Error("got a session from GET")
	}
	first.get(ticket.Path)
	if used := first.post("/console/ticket", "ticket", key); used.Status != http.StatusSeeOther || used.Header.Get("Location") != "/console/overview" {
		t.Fatalf("got %d to %q, want 303 to an address without the ticket", used.Status, used.Header.Get("Location"))
	}
	first.page("/console/runs")
	if again := second.post("/console/ticket", "ticket", key); again.Status != http.StatusGone || len(again.Header.Values("Set-Cookie")) > 0 {
		t.Errorf("a second use: got %d, want 410", again.Status)
	}
	if shown := second.get(ticket.Path); shown.Status != http.StatusGone {
		t.Errorf("a used ticket: got %d, want 410", shown.Status)
	}
	if strings.Contains(h.Logs(), key) {
		t.Error("got the ticket in the log")
	}
	second.cookies["sortie_console_"+portOf(h)] = key
	if second.get("/console/runs").Status != http.StatusSeeOther {
		t.Error("got a session for a ticket as the cookie")
	}
}

func TestTicketExpires(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*home){
		"time":       func(h *home) { h.Clock.Advance(session.TicketLife) },
		"revocation": func(h *home) { h.tokens.revoke(t, "owner") },
	} {
		h := setup(t)
		var ticket contract.ConsoleTicket
		if err := json.Unmarshal([]byte(h.Call(t, http.MethodPost, "/console/tickets", "", "Authorization", "Bearer "+ownerToken).Body), &ticket); err != nil {
			t.Fatal(err)
		}
		b := h.browser(t)
		b.get(ticket.Path)
		end(h)
		_, key, _ := strings.Cut(ticket.Path, "ticket=")
		if answer := b.post("/console/ticket", "ticket", key); answer.Status != http.StatusGone {
			t.Errorf("%s: got %d, want 410", name, answer.Status)
		}
	}
}

// TestExpiredSessionsAreRemoved checks that sign-ins remove the records of expired sessions.
func TestExpiredSessionsAreRemoved(t *testing.T) {
	t.Parallel()
	h := setup(t)
	for range 5 {
		h.signedIn(t, ownerToken)
	}
	h.Clock.Advance(session.SessionLife + time.Minute)
	h.signedIn(t, ownerToken)
	due, _, err := h.Store.ResourcesDue(t.Context(), "console-session", h.Clock.Now(), "", 100)
	if err != nil || len(due) != 0 {
		t.Errorf("got %d expired sessions, %v, want 0", len(due), err)
	}
}

// TestRecordHasNoToken checks that a copy of the store opens no session: it has neither the token
// nor the secret of the cookie.
func TestRecordHasNoToken(t *testing.T) {
	t.Parallel()
	h := setup(t)
	b := h.signedIn(t, ownerToken)
	_, secret, _ := strings.Cut(b.cookies["sortie_console_"+portOf(h)], ".")
	h.Clock.Advance(session.SessionLife)
	due, _, err := h.Store.ResourcesDue(t.Context(), "console-session", h.Clock.Now(), "", 10)
	if err != nil || len(due) != 1 {
		t.Fatalf("got %v, %v, want one session", due, err)
	}
	record, err := h.Store.LoadResource(t.Context(), due[0])
	if err != nil || record.Tenant != apitest.Tenant {
		t.Fatalf("got %+v, %v, want the record in the tenant of its token", record, err)
	}
	raw, err := base64.RawURLEncoding.DecodeString(secret)
	if err != nil {
		t.Fatal(err)
	}
	for _, never := range []string{ownerToken, secret, hex.EncodeToString(raw), base64.StdEncoding.EncodeToString([]byte(ownerToken))} {
		if strings.Contains(string(record.Document)+record.ID, never) {
			t.Errorf("got %s in the record %s %s", never, record.ID, record.Document)
		}
	}
	for _, key := range []string{record.ID, apitest.Tenant + "." + record.ID, apitest.Tenant + "." + record.ID[:43]} {
		b.cookies["sortie_console_"+portOf(h)] = key
		if answer := b.get("/console/runs"); answer.Status != http.StatusSeeOther {
			t.Errorf("%s: got %d, want no session", key, answer.Status)
		}
	}
}

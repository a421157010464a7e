//go:build browser

package browser_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

func TestSignInAndOut(t *testing.T) {
	w := shared(t)
	b := newTab(t, w.server)
	b.open("runs?state=Failed")
	if at := b.path(); at != "sign-in?next=%2Fconsole%2Fruns%3Fstate%3DFailed" {
		t.Fatalf("got %s without a session, want the page to sign in", at)
	}
	b.permit("401")
	b.fill("input[name=token]", "wrong")
	b.press(button("Sign in"))
	b.has("This token is unknown")
	b.fill("input[name=token]", w.token)
	b.press(button("Sign in"))
	if at := b.path(); at != "runs?state=Failed" {
		t.Fatalf("got %s after signing in, want the page that was asked for", at)
	}
	b.has("Runs", "import-orders")

	// The sign-out ends the session in all tabs.
	second := b.another()
	second.open("runs")
	b.do(click(`//summary[.//small]`))
	b.press(click(`//button[normalize-space()="Sign out"]`))
	b.has("Sign in to Sortie")
	second.awaits("the end of the session in the other tab", `location.pathname.endsWith("/sign-in")`)
	b.open("overview")
	b.has("Sign in to Sortie")
}

func TestTicket(t *testing.T) {
	w := shared(t)
	address, err := w.cli("open", "--print")
	if err != nil {
		t.Fatal(err)
	}
	b := newTab(t, w.server)
	for range 2 { // programs that preview links open it, too
		b.do(chromedp.Navigate(address))
		b.has("It works once")
	}
	b.press(click(`//main//button[starts-with(normalize-space(), "Sign in as")]`))
	if at := b.path(); at != "overview" {
		t.Fatalf("got %s after signing in, want overview without the ticket", at)
	}
	b.permit("410")
	other := newTab(t, w.server)
	other.permit("410")
	other.do(chromedp.Navigate(address))
	if strings.Contains(other.text("main"), "Sign in as") {
		t.Errorf("got a button for a used ticket:\n%s", other.text("main"))
	}
	if log, err := os.ReadFile(w.Data + ".log"); err != nil || strings.Contains(string(log), "ticket=") {
		t.Errorf("got the ticket in the log, %v", err)
	}
}

// token adds a token to the server and returns its text.
func token(t *testing.T, s *server, name string, args ...string) string {
	t.Helper()
	text, err := s.cli(append([]string{"tokens", "add", name, "--data", s.Data, "--json"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	var added struct{ Token string }
	if err := json.Unmarshal([]byte(text), &added); err != nil {
		t.Fatal(err)
	}
	return added.Token
}

func TestOtherTenantSeesNothing(t *testing.T) {
	w := shared(t)
	b := newTab(t, w.server)
	b.signIn(token(t, w.server, "acme", "--tenant", "acme"))
	b.permit("404")
	for _, path := range []string{"runs/" + w.completed, "runs/" + w.export, "jobs/nightly-report", "jobs/nightly-report/document", "inference/sessions/demo"} {
		response := run(b, chromedp.NavigateResponse(w.URL+"/console/"+path))
		if response.Status != 404 {
			t.Errorf("%s: got %d in another tenant, want 404", path, response.Status)
		}
	}
	b.open("runs")
	b.has("There are no runs yet")
	b.open("search?q=" + w.completed)
	b.has("Nothing has this id or name")
}

func TestReaderSeesNoActions(t *testing.T) {
	w := shared(t)
	b := newTab(t, w.server)
	b.signIn(token(t, w.server, "reader", "--scope", "runs:read"))
	for _, path := range []string{"runs/" + w.completed, "runs/" + w.running, "jobs", "jobs/nightly-report", "pools/narrow"} {
		b.open(path)
		if n := value[int](b, `document.querySelectorAll("main form[method=post]").length`); n != 0 {
			t.Errorf("%s: got %d forms for a reader, want none", path, n)
		}
	}
	if nav := b.text("header nav"); strings.Contains(nav, "Events") || strings.Contains(nav, "Webhooks") {
		t.Errorf("got the navigation %q for a reader, want no events and webhooks", nav)
	}
}

func TestRevokedTokenEndsTheSession(t *testing.T) {
	w := shared(t)
	b := newTab(t, w.server)
	b.signIn(token(t, w.server, "short", "--scope", "runs:read", "--scope", "events:read"))
	b.open("runs")
	b.awaits("the stream of changes", `document.querySelector("[data-live-dot=open]")`)
	if _, err := w.cli("tokens", "revoke", "short", "--data", w.Data); err != nil {
		t.Fatal(err)
	}
	b.awaits("the end of the session", `location.pathname.endsWith("/sign-in")`)
}

// TestOtherPagesCannotAct opens a page of another origin, which sends forms with the cookies of
// the reader: the port differs, so that cookies of the same site are sent.
func TestOtherPagesCannotAct(t *testing.T) {
	w := shared(t)
	b := signedIn(t, w.server)
	b.permit("request to another host", "403")
	attacker := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/html")
		rw.Header().Set("Referrer-Policy", r.URL.Query().Get("policy"))
		_, _ = fmt.Fprintf(rw, `<form method="post" action="%s/console/%s"><button>Go</button></form>`, w.URL, r.URL.Query().Get("path"))
	}))
	t.Cleanup(attacker.Close)
	for _, path := range []string{"runs/" + w.running + "/cancel", "runs/" + w.completed + "/rerun", "jobs/nightly-report/pause", "sign-out", "sign-in"} {
		for _, policy := range []string{"unsafe-url", "no-referrer"} { // with the second the origin is "null"
			b.do(chromedp.Navigate(attacker.URL + "/?" + url.Values{"path": {path}, "policy": {policy}}.Encode()))
			b.press(click(`//button`))
			b.has("Forbidden")
		}
	}
	b.open("runs/" + w.running)
	b.has("Running")
}

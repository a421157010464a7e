//go:build browser

package browser_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// address is a page of the console with a text that it shows.
type address struct{ path, text string }

// pages returns the addresses of all pages.
func (w *world) pages() []address {
	return []address{
		{"overview", "import-orders"},
		{"overview?since=1h", "Newest runs"},
		{"runs", "nightly-report"},
		{"runs?state=Failed", "import-orders"},
		{"runs?jobId=unknown", "No run matches"},
		{"runs/" + w.completed, "report.csv"},
		{"runs/" + w.failed, "HTTP 503 from the shop"},
		{"runs/" + w.retried + "?attempt=1", "no connection"},
		{"runs/" + w.running, "waiting for"},
		{"runs/" + w.queued, "Limits that apply"},
		{"runs/" + w.export, sample},
		{"runs/" + w.fanned, "All 6 children"},
		{"runs/" + w.fanned + "/children", "page-4"},
		{"runs/" + w.fanned + "/children?state=failed", "404: no page lost-page"},
		{"runs/" + w.fanned + ".2", "Child of"},
		{"runs/" + w.failed + "/changes", "import-orders"},
		{"runs/" + w.export + "/changes", "maxDepth"},
		{"runs?older=1h&state=Running", "No run matches"},
		{"runs/" + w.answer, "mock"},
		{"jobs", "after extract, prices"},
		{"jobs/nightly-report", "Run now"},
		{"jobs/nightly-report/document", "Europe/Berlin"},
		{"jobs/nightly-report/calendar", "Calendar"},
		{"new-job", "New job"},
		{"pools", "narrow"},
		{"pools/narrow", "resize-images"},
		{"pools/default", "default"},
		{"pools/pool0", "mock"},
		{"events", "job.completed"},
		{"events/1", "Signature"},
		{"events/proof", "stream"},
		{"webhooks", "/sortie"},
		{"webhooks/" + w.webhook, "Deliveries"},
		{"webhooks/" + w.webhook + "/recover", "again"},
		{"inference", "Engines"},
		{"inference/playground", "Prompt"},
		{"inference/playground?task=" + w.answer, "Answer"},
		{"inference/sessions/demo", "demo"},
		{"inference/usage", "By session"},
		{"inference/usage?days=7", "Tokens by day"},
		{"artifacts", "note"},
		{"artifacts?kind=unknown", "No artifact"},
		{"artifacts/" + w.artifact, "1204"},
		{"about", "Health"},
		{"search?q=report", "nightly-report"},
	}
}

// TestPages opens each page in each look.
func TestPages(t *testing.T) {
	w := shared(t)
	b := signedIn(t, w.server)
	seen := map[string]bool{}
	for _, at := range w.pages() {
		seen[at.path] = true
		t.Run(at.path, func(t *testing.T) {
			b := b.in(t)
			b.do(wide.apply())
			b.open(at.path)
			b.has(at.text)
			b.do(open)
			b.looks(at.path)
		})
	}
	for _, path := range value[[]string](b, `[...document.querySelectorAll("header nav a")].map(a => a.pathname.replace("/console/", ""))`) {
		if !seen[path] {
			t.Errorf("the page %s of the navigation is not in the test", path)
		}
	}
}

// open opens what is folded.
var open = evaluated(`for (const d of document.querySelectorAll("main details")) d.open = true`)

// looks checks the page in each look.
func (b *tab) looks(where string) {
	b.t.Helper()
	for _, l := range looks {
		b.do(l.apply(), painted)
		b.fits(where+", "+l.name, l)
		b.check(where+", "+l.name, l.axe)
	}
}

// painted waits until the page has its new size.
var painted = chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
	_, err := chromedp.Evaluate[chromedp.Void](`new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))`, chromedp.EvalAwaitPromise)(ctx, t)
	return err
})

// fits requires that the page is not wider than the screen.
func (b *tab) fits(where string, l look) {
	b.t.Helper()
	wider := value[[]string](b, fmt.Sprintf(`document.documentElement.scrollWidth <= %[1]d ? [] : [document.documentElement.scrollWidth + " px wide"].concat(
		[...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > %[1]d + 1 && !e.closest("nav, .scroll, .table, .sr")).map(e => e.outerHTML.slice(0, 100)))`, l.width))
	if len(wider) > 0 {
		b.t.Errorf("%s: the page is wider than the screen: %s", where, strings.Join(wider[:min(6, len(wider))], "\n  "))
	}
}

// TestPagesOutsideOfASession has the pages that need none, and the pages for errors.
func TestPagesOutsideOfASession(t *testing.T) {
	w := shared(t)
	ticket, err := w.cli("open", "--print")
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := url.Parse(ticket)
	if err != nil {
		t.Fatal(err)
	}
	b := newTab(t, w.server)
	b.permit("404")
	pages := []address{
		{"sign-in", "Client token"},
		{strings.TrimPrefix(parsed.RequestURI(), "/console/"), "Sign in as"},
	}
	check := func() {
		for _, at := range pages {
			b.open(at.path)
			b.has(at.text)
			b.looks(at.path)
		}
	}
	check()
	b.do(wide.apply())
	b.signIn(w.token)
	pages = []address{{"runs/export_none", "404"}, {"nothing", "404"}}
	check()
}

// TestMenuOfTheReader checks the menu with the sign-out in each look.
func TestMenuOfTheReader(t *testing.T) {
	b := signedIn(t, shared(t).server)
	b.do(click(`//summary[.//small]`))
	b.looks("menu")
}

// script switches scripts of pages on or off.
func (b *tab) script(on bool) {
	b.t.Helper()
	b.do(send(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !on}))
}

// TestWithoutJavaScript reads all pages, filters, pages and acts without scripts.
func TestWithoutJavaScript(t *testing.T) {
	w := shared(t)
	b := newTab(t, w.server)
	b.script(false)
	b.signIn(w.token)
	for _, at := range w.pages() {
		b.open(at.path)
		b.has(at.text)
		if !value[bool](b, `["footer.same .command code", "footer.same a[href*='json/']"].every(part => document.querySelector(part))`) {
			t.Errorf("%s: got no command and no JSON that have the same", at.path)
		}
	}

	b.open("runs")
	b.do(choose("select[name=state]", "Failed"))
	b.press(button("Filter"))
	if at := b.path(); !strings.Contains(at, "state=Failed") {
		t.Errorf("got %s after filtering, want the state in the address", at)
	}
	words := value[[]string](b, `[...document.querySelectorAll("tbody tr .badge")].map(e => e.innerText.trim())`)
	if len(words) == 0 || slices.ContainsFunc(words, func(word string) bool { return word != "Failed" }) {
		t.Errorf("got runs in the states %q, want Failed", words)
	}

	b.open("search")
	b.fill(".filters input[name=q]", "import")
	b.press(button("Search"))
	b.press(click(`//main//table//a`))
	b.has("Orders from the shop")

	id, err := w.shell(waiting, object{"env": object{"GATE": "/nonexistent/gate"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.await(id, "Running"); err != nil {
		t.Fatal(err)
	}
	b.open("runs/" + id)
	b.press(button("Cancel"))
	b.has("The cancel request is recorded")
	if err := w.await(id, "Cancelled"); err != nil {
		t.Fatal(err)
	}

	b.open("inference/playground")
	b.fill("textarea[name=prompt]", "Tell a story")
	b.fill("input[name=max_tokens]", "20")
	b.press(button("Ask"))
	b.has("Answer", "20 tokens from")
}

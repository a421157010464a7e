//go:build browser

package browser_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// tab is a tab of the browser. At the end of its test it reports what no page of the console may
// cause.
type tab struct {
	t      *testing.T
	ctx    context.Context
	server *server

	mu     sync.Mutex
	faults []string
	// permitted are parts of faults that a test causes.
	permitted []string
}

// newTab opens a tab with cookies of its own.
func newTab(t *testing.T, s *server) *tab {
	t.Helper()
	return openTab(t, s, tools.browser, chromedp.WithNewBrowserContext())
}

// another opens a tab that shares the cookies.
func (b *tab) another() *tab {
	b.t.Helper()
	return openTab(b.t, b.server, b.ctx)
}

func openTab(t *testing.T, s *server, parent context.Context, options ...chromedp.ContextOption) *tab {
	t.Helper()
	b := &tab{t: t, server: s}
	ctx, cancel := chromedp.NewContext(parent, append(options, chromedp.WithListener(b.listen))...)
	b.ctx = ctx
	t.Cleanup(func() {
		cancel()
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, f := range b.faults {
			if !slices.ContainsFunc(b.permitted, func(p string) bool { return strings.Contains(f, p) }) {
				t.Errorf("the browser reports %s", f)
			}
		}
	})
	// The first action opens the tab. It must not have a time limit, which would close the tab.
	if err := chromedp.Do(ctx, send(audits.Enable, cdp.Empty{})); err != nil {
		t.Fatal(err)
	}
	b.do(send(emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}), wide.apply())
	return b
}

// in returns the tab for a subtest.
func (b *tab) in(t *testing.T) *tab {
	return &tab{t: t, ctx: b.ctx, server: b.server}
}

// listen records faults.
func (b *tab) listen(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.fault(fmt.Sprintf("exception: %s %s", e.ExceptionDetails.Text, e.ExceptionDetails.Exception.Description))
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			var texts []string
			for _, each := range e.Args {
				texts = append(texts, string(each.Value)+each.Description)
			}
			b.fault("console: " + strings.Join(texts, " "))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			b.fault(fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	case *audits.EventIssueAdded:
		if e.Issue.Code == audits.InspectorIssueCodeContentSecurityPolicyIssue {
			b.fault(fmt.Sprintf("content security policy: %+v", e.Issue.Details.ContentSecurityPolicyIssueDetails))
		}
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, b.server.URL+"/") && !strings.HasPrefix(e.Request.URL, "data:") {
			b.fault("request to another host: " + e.Request.URL)
		}
	case *page.EventJavascriptDialogOpening:
		b.fault("dialog: " + e.Message)
	}
}

func (b *tab) fault(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = append(b.faults, text)
}

// permit allows the faults that contain one of the texts.
func (b *tab) permit(texts ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.permitted = append(b.permitted, texts...)
}

// send is an action that sends a command of the protocol.
func send[P, R any](command cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, command, params)
		return err
	})
}

// run runs an action and returns its value.
func run[T any](b *tab, action chromedp.Action[T]) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, limit)
	defer cancel()
	result, err := chromedp.Run(ctx, action)
	if err != nil {
		b.fail(err)
	}
	return result
}

// do runs actions one after another.
func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	run(b, chromedp.Steps(actions...))
}

// fail ends the test with the address and the text of the page.
func (b *tab) fail(err error) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, limit)
	defer cancel()
	text, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText.slice(0, 2000)`))
	b.t.Fatalf("%v, on %s", err, text)
}

// press runs actions that lead to another page, and waits for that page.
func (b *tab) press(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, limit)
	defer cancel()
	if _, err := chromedp.RunResponse(ctx, actions...); err != nil {
		b.fail(err)
	}
}

// open opens a page, by its path below /console/.
func (b *tab) open(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.server.URL + "/console/" + path))
}

// click clicks the first element that an XPath selects, when it is visible.
func click(xpath string) chromedp.Action[chromedp.Void] {
	return chromedp.Click(chromedp.Search(xpath), chromedp.NodeVisible)
}

// button clicks a button of the page.
func button(text string) chromedp.Action[chromedp.Void] {
	return click(fmt.Sprintf(`//main//button[normalize-space()=%q]`, text))
}

// link follows a link.
func link(text string) chromedp.Action[chromedp.Void] {
	return click(fmt.Sprintf(`//a[normalize-space()=%q]`, text))
}

// fill replaces the text of the field that a CSS selector selects.
func (b *tab) fill(selector, text string) {
	b.t.Helper()
	b.do(chromedp.Focus(chromedp.CSS(selector)), evaluated(`document.activeElement.select()`),
		send(input.InsertText, input.InsertTextParams{Text: text}))
}

// value evaluates an expression in the page.
func value[T any](b *tab, expression string) (result T) {
	b.t.Helper()
	return run(b, chromedp.Evaluate[T](expression))
}

// path returns the path and the query of the page below /console/.
func (b *tab) path() string {
	b.t.Helper()
	return strings.TrimPrefix(value[string](b, "location.pathname + location.search"), "/console/")
}

// text returns the visible text of the first element that a CSS selector selects; empty without
// one.
func (b *tab) text(selector string) string {
	b.t.Helper()
	return value[string](b, fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector))
}

// has requires that the main part of the page has texts.
func (b *tab) has(texts ...string) {
	b.t.Helper()
	shown := b.text("main")
	for _, text := range texts {
		if !strings.Contains(shown, text) {
			b.t.Fatalf("%s: got no %q in:\n%s", b.path(), text, shown)
		}
	}
}

// awaits waits until an expression in the page is true.
func (b *tab) awaits(what, expression string) {
	b.t.Helper()
	err := wait(what, func() (bool, error) {
		ctx, cancel := context.WithTimeout(b.ctx, limit)
		defer cancel()
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		if err != nil && strings.Contains(err.Error(), "navigated") { // the next try sees the new page
			return false, nil
		}
		return ok, err
	})
	if err != nil {
		b.fail(err)
	}
}

// signIn signs in with a token, and expects a path.
func (b *tab) signIn(token string) {
	b.t.Helper()
	b.open("sign-in")
	b.fill("input[name=token]", token)
	b.press(button("Sign in"))
	if at := b.path(); at != "overview" {
		b.t.Fatalf("got %s after signing in, want overview", at)
	}
}

// signedIn opens a tab that is signed in with all scopes.
func signedIn(t *testing.T, s *server) *tab {
	t.Helper()
	b := newTab(t, s)
	b.signIn(s.token)
	return b
}

// look is a screen and a colour scheme.
type look struct {
	name          string
	width, height int64
	scheme        string
	// axe are options of axe: one look of each width has all rules.
	axe string
}

var (
	wide  = look{"1280 light", 1280, 800, "light", ""}
	looks = []look{wide, {"1280 dark", 1280, 800, "dark", colours}, {"390 light", 390, 844, "light", colours}, {"390 dark", 390, 844, "dark", ""}}
)

func (l look) apply() chromedp.Action[chromedp.Void] {
	return chromedp.Steps(
		send(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: l.width, Height: l.height, DeviceScaleFactor: 1, Mobile: l.width < 700}),
		media("prefers-color-scheme", l.scheme),
	)
}

// evaluated is an action that evaluates statements in the page.
func evaluated(script string) chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void](script)
}

// choose selects an option of the list that a CSS selector selects, by its text or value.
func choose(selector, text string) chromedp.Action[chromedp.Void] {
	return evaluated(fmt.Sprintf(`{ const list = document.querySelector(%q); list.value = %q; }`, selector, text))
}

// media emulates a setting of the system.
func media(name, value string) chromedp.Action[chromedp.Void] {
	return send(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: name, Value: value}}})
}

//go:build browser

package browser_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

func itoa(n int) string { return strconv.Itoa(n) }

// write creates the file for which a program waits.
func write(t *testing.T, gate string) {
	t.Helper()
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// keys presses keys on the focused element.
func keys(text string) chromedp.Action[chromedp.Void] { return chromedp.KeyEvent(text) }

// slash presses the key "/". A page can prevent that it writes the character.
var slash = chromedp.Steps(
	send(input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: "/", Code: "Slash", Text: "/"}),
	send(input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyUp, Key: "/", Code: "Slash"}),
)

// focused describes the focused element.
const focused = `(e => (e.getAttribute("aria-label") || e.innerText || e.name || e.tagName).trim())(document.activeElement)`

// tabTo presses Tab until the focused element has a text.
func (b *tab) tabTo(text string) {
	b.t.Helper()
	var passed []string
	for range 200 {
		b.do(keys(kb.Tab))
		at := value[string](b, focused)
		if at == text {
			return
		}
		passed = append(passed, at)
	}
	b.t.Fatalf("%s: got no %q among the elements that Tab reaches: %.1000q", b.path(), text, passed)
}

// TestKeyboardAlone signs in, finds a failed run, reads its log and repeats it, without a mouse.
func TestKeyboardAlone(t *testing.T) {
	w := shared(t)
	b := newTab(t, w.server)
	b.open("sign-in")
	b.awaits("the focus of the field", `document.hasFocus() && document.activeElement.name === "token"`)
	b.do(keys(w.token))
	b.awaits("the token", fmt.Sprintf(`document.activeElement.value.length === %d`, len(w.token)))
	b.press(keys(kb.Enter))
	b.do(slash)
	if at := value[string](b, `document.activeElement.name`); at != "q" {
		t.Fatalf("got the focus in %q after /, want the search", at)
	}
	b.do(keys("import"))
	b.press(keys(kb.Enter))
	b.tabTo("import-orders")
	b.press(keys(kb.Enter))
	b.tabTo(w.failed)
	b.press(keys(kb.Enter))
	b.has("HTTP 503 from the shop", "PROGRAM_EXIT")
	b.tabTo("Rerun")
	b.press(keys(kb.Enter))
	b.has("Repeats")
	if at := b.path(); at == "runs/"+w.failed {
		t.Errorf("got %s after the rerun, want the page of the new run", at)
	}
}

// TestSkipLink goes to the content with the first Tab.
func TestSkipLink(t *testing.T) {
	b := signedIn(t, shared(t).server)
	b.open("runs")
	b.tabTo("Skip to the content")
	b.do(keys(kb.Enter), keys(kb.Tab))
	if !value[bool](b, `document.querySelector("main").contains(document.activeElement)`) {
		t.Errorf("got the focus on %q after the skip link, want an element of the content", value[string](b, focused))
	}
}

// TestEveryElementIsReached presses Tab through pages: each link, button and field gets the
// focus, visibly.
func TestEveryElementIsReached(t *testing.T) {
	w := shared(t)
	b := signedIn(t, w.server)
	for _, path := range []string{"overview", "runs?state=Failed", "runs/" + w.failed, "jobs", "jobs/nightly-report", "pools/narrow", "webhooks/" + w.webhook, "inference/playground"} {
		b.open(path)
		b.do(open, evaluated(`document.activeElement.blur()`), evaluated(`
			window.wanted = new Set([...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")].filter(e => e.checkVisibility() && !e.disabled && e.type !== "hidden" && !e.closest(".menu")));
			window.invisible = [];`))
		for range value[int](b, `wanted.size`) + 20 {
			b.do(keys(kb.Tab), evaluated(`{ const e = document.activeElement; wanted.delete(e); const s = getComputedStyle(e);
				if (e !== document.body && s.outlineStyle === "none" && !e.querySelector("rect") && e.type !== "datetime-local" /* a part of it has the focus */) invisible.push(e.outerHTML.slice(0, 120)); }`))
			if value[int](b, `wanted.size`) == 0 {
				break
			}
		}
		if left := value[[]string](b, `[...wanted].map(e => e.outerHTML.slice(0, 120))`); len(left) > 0 {
			t.Errorf("%s: Tab does not reach\n  %s", path, strings.Join(left, "\n  "))
		}
		if bare := value[[]string](b, `invisible`); len(bare) > 0 {
			t.Errorf("%s: the focus is not visible on\n  %s", path, strings.Join(bare, "\n  "))
		}
	}
}

// TestReducedMotionAndForcedColours opens a page with settings of the system.
func TestReducedMotionAndForcedColours(t *testing.T) {
	w := shared(t)
	b := signedIn(t, w.server)
	for _, feature := range []string{"prefers-reduced-motion: reduce", "forced-colors: active"} {
		name, set, _ := strings.Cut(feature, ": ")
		b.do(media(name, set))
		b.open("runs/" + w.failed)
		b.has("Failed")
		if !value[bool](b, fmt.Sprintf(`matchMedia("(%s)").matches`, feature)) {
			t.Fatalf("the browser does not emulate %s", feature)
		}
		if n := value[int](b, `document.getAnimations().length`); name == "prefers-reduced-motion" && n > 0 {
			t.Errorf("got %d animations, want none", n)
		}
		if style := value[string](b, `getComputedStyle(document.querySelector(".badge")).borderTopStyle`); name == "forced-colors" && style == "none" {
			t.Error("got a badge without a border in forced colours")
		}
	}
}

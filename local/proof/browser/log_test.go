//go:build browser

package browser_test

import (
	"context"
	"testing"

	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
)

// TestLogIsSearched searches a log, opens a found line with its neighbours, and checks both pages
// in each look.
func TestLogIsSearched(t *testing.T) {
	w := shared(t)
	id, err := w.shell(`for i in $(seq 2000); do echo "line $i."; done; printf '\033[31mERROR\033[0m no disk\n'`, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.await(id, "Completed"); err != nil {
		t.Fatal(err)
	}
	b := signedIn(t, w.server)
	b.open("runs/" + id)
	b.awaits("the end of the log", `(e => e.scrollTop > 0 && e.scrollTop + e.clientHeight > e.scrollHeight - 5)(document.querySelector(".log"))`)
	b.has("2001 lines", "1 error", "Lines 1702 to 2001")
	b.fill(`form[aria-label="Search the log"] input[name=q]`, "LINE 777.")
	b.press(keys("\r"))
	b.has("1 of 2001 lines match")
	b.looks("the found lines")
	b.press(click(`//ol[contains(@class, "log")]/li[1]/a`))
	b.has("line 776.", "line 778.")
	b.awaits("the addressed line", `(r => r && r.top >= 0 && r.bottom <= innerHeight)(document.querySelector("#L777:target")?.getBoundingClientRect())`)
	b.looks("the line in its place")
}

// TestLargeLog follows a program that writes 100 MB. The page stays usable and small.
func TestLargeLog(t *testing.T) {
	w := shared(t)
	b := signedIn(t, w.server)
	b.do(send(performance.Enable, performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks}))
	id, gate := gated(t, w.server, waiting+`; yes "2026-11-28T08:00:00Z INFO one of the lines of a long log" | head -c 104857600; echo; echo "the last line"`)
	b.open("runs/" + id)
	b.awaits("the first line of the log", `document.querySelector(".log")?.innerText.includes("waiting for")`)
	before := b.metrics()
	write(t, gate)
	ctx, cancel := context.WithTimeout(b.ctx, 5*limit)
	defer cancel()
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`new Promise((done) => {
		const look = () => document.querySelector(".log").lastElementChild.textContent.includes("the last line") ? done(true) : setTimeout(look, 500);
		look();
	})`, chromedp.EvalAwaitPromise)); err != nil {
		b.fail(err)
	}
	after := b.metrics()
	if err := w.await(id, "Completed"); err != nil {
		t.Fatal(err)
	}
	busy, whole := after["TaskDuration"]-before["TaskDuration"], after["Timestamp"]-before["Timestamp"]
	lines := value[int](b, `document.querySelectorAll(".log li").length`)
	t.Logf("the main thread was busy for %.2f s of %.1f s, and the page has %d lines", busy, whole, lines)
	if busy > whole/2 || lines > 5000 {
		t.Errorf("got a busy main thread for %.2f s of %.1f s and %d lines, want at most half, and 5000", busy, whole, lines)
	}
	b.open("runs/" + id)
	b.has("the last line", "complete")
	if lines := value[int](b, `document.querySelectorAll(".log li").length`); lines > 300 {
		t.Errorf("got %d lines on the page, want at most 300", lines)
	}
}

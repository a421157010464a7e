//go:build browser

package browser_test

import (
	"context"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
)

// metrics returns figures of the page by name. Times are processor time of its main thread, so
// other processes do not matter.
func (b *tab) metrics() map[string]float64 {
	b.t.Helper()
	found := map[string]float64{}
	b.do(send(heapprofiler.CollectGarbage, cdp.Empty{}), chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		result, err := cdp.Call(ctx, t, performance.GetMetrics, cdp.Empty{})
		for _, m := range result.Metrics {
			found[m.Name] = m.Value
		}
		return err
	}))
	return found
}

// TestManyChanges sends 50 changes a second to open pages for ten seconds, while runs start: the
// main thread is free for at least half of the time. Then it sends as many changes as an hour has:
// the memory of the tab does not grow.
func TestManyChanges(t *testing.T) {
	w := shared(t)
	b := signedIn(t, w.server)
	b.do(send(performance.Enable, performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks}))
	leader := b.another() // relays the stream to the other tabs
	leader.open("runs")
	leader.awaits("the stream of changes", `document.querySelector("[data-live-dot=open]")`)
	// A change is what the stream has for an event. postMessage does not reach its own tab.
	leader.do(evaluated(`
		window.bus = new BroadcastChannel("sortie-console");
		window.changes = (n) => { for (let i = 0; i < n; i++) bus.postMessage({ change: { type: "job.completed", runId: "run-" + i } }); };`))
	for _, page := range []string{"runs", "overview", "events", "jobs"} {
		b.open(page)
		b.awaits("the stream of changes", `document.querySelector("[data-live-dot=open]")`)
		for range 5 {
			if _, err := w.shell("true", nil); err != nil {
				t.Fatal(err)
			}
		}
		before := b.metrics()
		run(leader, chromedp.Evaluate[bool](`new Promise((done) => {
			let n = 0;
			const timer = setInterval(() => { changes(5); if (++n === 100) { clearInterval(timer); done(true); } }, 100);
		})`, chromedp.EvalAwaitPromise))
		after := b.metrics()
		busy := (after["TaskDuration"] - before["TaskDuration"]) / (after["Timestamp"] - before["Timestamp"])
		t.Logf("%s: the main thread was busy for %.1f %% of the time", page, 100*busy)
		if busy > 0.5 {
			t.Errorf("%s: the main thread was busy for %.0f %% of the time, want at most 50 %%", page, 100*busy)
		}
	}
	before := b.metrics()
	for range 36 {
		run(leader, chromedp.Evaluate[bool](`changes(5000), new Promise((done) => setTimeout(() => done(true), 100))`, chromedp.EvalAwaitPromise))
	}
	b.awaits("the end of the changes", `true`)
	after := b.metrics()
	t.Logf("after 180,000 changes: %.1f MiB before, %.1f MiB after, %.0f nodes before, %.0f after",
		before["JSHeapUsedSize"]/(1<<20), after["JSHeapUsedSize"]/(1<<20), before["Nodes"], after["Nodes"])
	if grown := after["JSHeapUsedSize"] - before["JSHeapUsedSize"]; grown > 4<<20 {
		t.Errorf("the memory of the page has grown by %.1f MiB, want less than 4", grown/(1<<20))
	}
	if after["Nodes"] > 2*before["Nodes"]+1000 {
		t.Errorf("got %.0f nodes after %.0f, want no more than the page has", after["Nodes"], before["Nodes"])
	}
}

// TestFirstPaint loads pages several times. Other processes can delay a load, so the fastest one
// counts.
func TestFirstPaint(t *testing.T) {
	w := shared(t)
	b := signedIn(t, w.server)
	for _, page := range []string{"overview", "runs", "runs/" + w.failed, "jobs", "events"} {
		least := 1e9
		for range 5 {
			b.open(page)
			b.awaits("the first paint", `performance.getEntriesByName("first-contentful-paint").length`)
			least = min(least, value[float64](b, `performance.getEntriesByName("first-contentful-paint")[0].startTime`))
		}
		t.Logf("%s: first contentful paint after %.0f ms", page, least)
		if least > 300 {
			t.Errorf("%s: first contentful paint after %.0f ms, want at most 300", page, least)
		}
	}
}

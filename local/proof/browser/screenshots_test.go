//go:build browser

package browser_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

var pictures = flag.String("pictures", "", "folder for pictures of the pages; empty takes none")

// picture is a picture of a page: its file and its screen.
type picture struct {
	name, path    string
	width, height int64
	scheme        string
}

// TestScreenshots takes pictures of pages with much to see, for the documents.
func TestScreenshots(t *testing.T) {
	if *pictures == "" {
		t.Skip("no folder for pictures: make screenshots")
	}
	if err := os.MkdirAll(*pictures, 0o750); err != nil {
		t.Fatal(err)
	}
	s, err := startServer("pictures", "SORTIE_HOOK_ALLOW=127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	w, err := populate(s)
	if err != nil {
		t.Fatal(err)
	}
	w.busy(t)
	b := signedIn(t, s)
	b.do(send(emulation.SetScrollbarsHidden, emulation.SetScrollbarsHiddenParams{Hidden: true}))
	for _, p := range []picture{
		{"overview", "overview?since=1h", 1280, 860, "light"},
		{"overview-dark", "overview?since=1h", 1280, 860, "dark"},
		{"runs", "runs", 1280, 800, "light"},
		{"runs-narrow", "runs", 390, 844, "light"},
		{"run-waits", "runs/" + w.queued, 1280, 800, "light"},
		{"run-failed", "runs/" + w.failed, 1280, 800, "light"},
		{"run-failed-dark", "runs/" + w.failed, 1280, 800, "dark"},
		{"run-dark", "runs/" + w.completed, 1280, 800, "dark"},
		{"run-narrow", "runs/" + w.failed, 390, 844, "light"},
		{"children", "runs/" + w.fanned, 1280, 800, "light"},
		{"children-list", "runs/" + w.fanned + "/children", 1280, 620, "dark"},
		{"children-narrow", "runs/" + w.fanned + "/children", 390, 844, "light"},
		{"jobs", "jobs", 1280, 620, "light"},
		{"jobs-dark", "jobs", 1280, 620, "dark"},
		{"jobs-narrow", "jobs", 390, 844, "light"},
		{"overview-narrow", "overview?since=1h", 390, 844, "light"},
		{"job", "jobs/nightly-report", 1280, 800, "light"},
		{"calendar", "jobs/nightly-report/calendar", 1280, 800, "light"},
		{"pool", "pools/narrow", 1280, 800, "light"},
		{"event", "events/1", 1280, 800, "light"},
		{"webhook", "webhooks/" + w.webhook, 1280, 800, "light"},
		{"inference", "inference", 1280, 800, "light"},
		{"playground", "inference/playground?task=" + w.answer, 1280, 800, "light"},
	} {
		b.take(p)
	}
}

// busy adds runs, so that lists and histograms have a shape.
func (w *world) busy(t *testing.T) {
	t.Helper()
	var started []string
	for i := range 24 {
		job := "nightly-report"
		if i%8 == 5 {
			job = "import-orders"
		}
		answer, err := w.call(http.MethodPost, "/v1/jobs/"+job+"/runs", object{})
		if err != nil {
			t.Fatal(err)
		}
		started = append(started, fmt.Sprint(answer["taskId"]))
	}
	for range 2 {
		if _, err := w.call(http.MethodPost, "/v1/jobs/resize-images/runs", object{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range started {
		if err := w.await(id, "Completed", "Failed"); err != nil {
			t.Fatal(err)
		}
	}
}

// take writes a picture of a page.
func (b *tab) take(p picture) {
	b.t.Helper()
	l := look{name: p.name, width: p.width, height: p.height, scheme: p.scheme}
	b.do(l.apply(), send(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: p.width, Height: p.height, DeviceScaleFactor: scale, Mobile: p.width < 700,
	}))
	b.open(p.path)
	b.awaits("the page", `!document.querySelector(".verdict.wait") && (!document.querySelector("[data-live-dot]") || document.querySelector("[data-live-dot=open]"))`)
	b.do(painted)
	shot := run(b, func(ctx context.Context, t *chromedp.Target) (page.CaptureScreenshotResult, error) {
		format, quality := page.CaptureScreenshotFormatWebp, int64(80)
		return cdp.Call(ctx, t, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: format, Quality: &quality})
	})
	if err := os.WriteFile(filepath.Join(*pictures, p.name+".webp"), shot.Data, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// scale is the number of pixels of a picture for each one of the page.
const scale = 1.5

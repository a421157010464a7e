//go:build browser

package browser_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// gated starts a run that waits, and returns its id and the file that lets it end.
func gated(t *testing.T, s *server, script string) (id, gate string) {
	t.Helper()
	gate = filepath.Join(t.TempDir(), "gate")
	id, err := s.shell(script, object{"env": object{"GATE": gate}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.await(id, "Running"); err != nil {
		t.Fatal(err)
	}
	return id, gate
}

// stays marks the page, so that a later check detects that it was loaded again.
var stays = evaluated(`window.marked = true`)

func TestRunChangesWhileItIsOpen(t *testing.T) {
	w := shared(t)
	b := signedIn(t, w.server)
	id, gate := gated(t, w.server, waiting)
	b.open("runs/" + id)
	b.awaits("the stream of changes", `document.querySelector("[data-live-dot=open]")`)
	b.awaits("the first line of the log", `document.querySelector(".log")?.innerText.includes("waiting for")`)
	b.do(stays)
	write(t, gate)
	b.awaits("the end of the run", `document.querySelector("#head .badge").innerText.trim() === "Completed"`)
	b.awaits("the last line of the log", `document.querySelector(".log").innerText.includes("opened")`)
	b.awaits("the action for an ended run", `[...document.querySelectorAll("#head button")].some(b => b.innerText === "Rerun")`)
	if lines := value[int](b, `document.querySelectorAll(".log li").length`); lines != 2 {
		t.Errorf("got %d lines of the log, want 2", lines)
	}
	if !value[bool](b, `window.marked === true`) {
		t.Error("the page was loaded again, want changes in place")
	}
}

// TestRunEndsBeforeTheStreamOpens ends a run after its page was read, and before the page gets
// changes: another tab has the lock of the stream.
func TestRunEndsBeforeTheStreamOpens(t *testing.T) {
	w := shared(t)
	b := signedIn(t, w.server)
	holder := b.another()
	holder.open("about")
	for _, path := range []string{"runs/", "runs"} {
		id, gate := gated(t, w.server, waiting)
		if path == "runs/" {
			path += id
		}
		b.open("about") // it has no stream
		holder.do(evaluated(`window.held = false; navigator.locks.request("sortie-console-stream", () => { window.held = true; return new Promise((done) => { window.release = done; }); });`))
		holder.awaits("the lock of the stream", `window.held`)
		b.open(path)
		b.do(stays)
		write(t, gate)
		if err := w.await(id, "Completed"); err != nil {
			t.Fatal(err)
		}
		holder.do(evaluated(`window.release()`))
		b.awaits("the end of the run", `(document.querySelector("#head .badge") ?? document.querySelector("[data-run='`+id+`'] .badge")).innerText.trim() === "Completed"`)
		if !value[bool](b, `window.marked === true`) {
			t.Error("the page was loaded again, want changes in place")
		}
	}
}

func TestListSaysThatThereAreNewRuns(t *testing.T) {
	w := shared(t)
	b := signedIn(t, w.server)
	b.open("runs")
	b.awaits("the stream of changes", `document.querySelector("[data-live-dot=open]")`)
	b.do(stays)
	first := b.text("tbody tr")
	id, err := w.shell("echo new", nil)
	if err != nil {
		t.Fatal(err)
	}
	b.awaits("the button for new runs", `!document.querySelector("[data-new]").hidden`)
	if now := b.text("tbody tr"); now != first {
		t.Errorf("got the first row %q before the button was pressed, want %q", now, first)
	}
	if !value[bool](b, `window.marked === true`) {
		t.Error("the page was loaded again")
	}
	b.press(click(`//button[@data-new]`))
	if at := value[string](b, `document.querySelector("tbody tr").dataset.run`); at != id {
		t.Errorf("got run %s in the first row, want %s", at, id)
	}
}

// TestPauseStopsChanges pauses the page: it then changes only after the reader continues.
func TestPauseStopsChanges(t *testing.T) {
	w := shared(t)
	b := signedIn(t, w.server)
	id, gate := gated(t, w.server, waiting)
	b.open("runs/" + id)
	b.awaits("the stream of changes", `document.querySelector("[data-live-dot=open]")`)
	b.do(click(`//button[@data-live-dot]`))
	write(t, gate)
	if err := w.await(id, "Completed"); err != nil {
		t.Fatal(err)
	}
	// The log is a stream of its own, which shows that the page was informed.
	b.awaits("the last line of the log", `document.querySelector(".log").innerText.includes("opened")`)
	if state := b.text("#head .badge"); state != "Running" {
		t.Errorf("got the state %s while the page is paused, want Running", state)
	}
	b.do(click(`//button[@data-live-dot]`))
	b.awaits("the end of the run", `document.querySelector("#head .badge").innerText.trim() === "Completed"`)
}

// TestReaderIsNotDisturbed keeps the focus and what the reader writes while runs change.
func TestReaderIsNotDisturbed(t *testing.T) {
	w := shared(t)
	b := signedIn(t, w.server)
	b.open("runs")
	b.awaits("the stream of changes", `document.querySelector("[data-live-dot=open]")`)
	b.fill("input[name=jobId]", "nightly")
	for range 10 {
		if _, err := w.shell("true", nil); err != nil {
			t.Fatal(err)
		}
	}
	b.awaits("the button for new runs", `!document.querySelector("[data-new]").hidden`)
	if got := value[string](b, `document.activeElement.name + "=" + document.activeElement.value`); got != "jobId=nightly" {
		t.Errorf("got the field %q, want the one that the reader has filled", got)
	}
}

// TestManyTabs opens more tabs than a browser has connections to a host.
func TestManyTabs(t *testing.T) {
	w := shared(t)
	b := signedIn(t, w.server)
	tabs := []*tab{b}
	for range 7 {
		tabs = append(tabs, b.another())
	}
	for _, each := range tabs {
		each.open("runs")
		each.has("nightly-report")
	}
	id, err := w.shell("echo many", nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, each := range tabs {
		each.awaits("the stream of changes", `document.querySelector("[data-live-dot=open]")`)
		each.awaits("the button for new runs", `!document.querySelector("[data-new]").hidden`)
		each.do(chromedp.Reload())
		if at := value[string](each, `document.querySelector("tbody tr").dataset.run`); at != id {
			t.Errorf("tab %d: got run %s in the first row, want %s", i, at, id)
		}
	}
}

// TestPageSurvivesTheServer kills the server while a page is open, and starts it again.
func TestPageSurvivesTheServer(t *testing.T) {
	s, err := startServer("killed")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	b := signedIn(t, s)
	b.permit("net::ERR_", "Failed to load resource")
	id, gate := gated(t, s, `i=0; while [ ! -e "$GATE" ]; do i=$((i+1)); echo "line $i"; sleep 0.2; done; echo "last $i"`)
	b.open("runs/" + id)
	b.awaits("the stream of changes", `document.querySelector("[data-live-dot=open]")`)
	b.awaits("lines of the log", `document.querySelectorAll(".log li").length > 5`)
	b.do(stays)
	s.kill()
	b.awaits("the loss of the stream", `document.querySelector("[data-live-dot=lost]")`)
	if err := s.start(strings.TrimPrefix(s.URL, "http://")); err != nil {
		t.Fatal(err)
	}
	b.awaits("the stream of changes", `document.querySelector("[data-live-dot=open]")`)
	write(t, gate)
	b.awaits("the end of the run", `document.querySelector("#head .badge").innerText.trim() === "Completed"`)
	b.awaits("the last line of the log", `/last \d+/.test(document.querySelector(".log").innerText)`)
	if !value[bool](b, `window.marked === true`) {
		t.Error("the page was loaded again")
	}
	lines := value[[]string](b, `[...document.querySelectorAll(".log li span")].map(e => e.innerText.trim())`)
	for i, line := range lines[:len(lines)-1] {
		if want := "line " + itoa(i+1); line != want {
			t.Errorf("got %q as line %d of the log, want %q", line, i+1, want)
			break
		}
	}
}

//go:build browser

package browser_test

import (
	"testing"
	"time"
)

// TestWayOfANewUser follows a link of "sortie open", and finds why a run waits, what a failed one
// said, and its rerun: with a few clicks, in less than a minute.
func TestWayOfANewUser(t *testing.T) {
	w := shared(t)
	link, err := w.cli("open", "--print")
	if err != nil {
		t.Fatal(err)
	}
	b := newTab(t, w.server)
	began, clicks := time.Now(), 0
	press := func(xpath string) {
		t.Helper()
		clicks++
		b.press(click(xpath))
	}
	done := func(what string) {
		t.Helper()
		t.Logf("%s: after %d clicks and %.1f s", what, clicks, time.Since(began).Seconds())
	}
	b.open(link[len(w.URL+"/console/"):])
	press(`//main//button`)
	b.has("Waiting", "a slot of pool narrow", "Failures by cause")
	press(`//section[@aria-labelledby="h-waiting"]//td[last()]//a`)
	b.has("Why", "pool narrow", "To change it")
	done("why a run waits")
	press(`//a[contains(@class, "brand")]`)
	press(`(//section[@aria-labelledby="h-causes"]//tr[contains(., "import-orders")]//td[last()]//a)[1]`)
	b.has("Error", "HTTP 503 from the shop")
	done("what a failed run said")
	press(`//main//button[normalize-space()="Rerun"]`)
	b.has("This run repeats the earlier one")
	done("its rerun")
	if took := time.Since(began); clicks > 6 || took > time.Minute {
		t.Errorf("got %d clicks and %s, want at most 6 in a minute", clicks, took)
	}
}

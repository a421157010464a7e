package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// loggedRun returns a run that has ended with a log.
func (h *home) loggedRun(t *testing.T, log string) string {
	t.Helper()
	id := h.Accept(t)
	h.Start(t, id)
	h.Write(t, id, log)
	h.Report(t, id, contract.Callback{Status: contract.StatusError, Error: "failed"})
	h.Settle(t, id)
	return id
}

func TestLogIsReadInWindows(t *testing.T) {
	t.Parallel()
	h := setup(t)
	var log strings.Builder
	for n := 1; n <= 2000; n++ {
		fmt.Fprintf(&log, "line %d.\n", n)
	}
	page := "/console/runs/" + h.loggedRun(t, log.String())
	b := h.signedIn(t, ownerToken)
	for query, want := range map[string]struct{ first, last int }{
		"": {1701, 2000}, "?line=1": {1, 250}, "?line=1000&attempt=1": {950, 1249}, "?line=2000": {1950, 2000},
	} {
		text := b.page(page+query, fmt.Sprintf(`id="L%d"`, want.first), fmt.Sprintf(`id="L%d"`, want.last), fmt.Sprintf("Lines %d to %d", want.first, want.last), "2000 lines, complete")
		for _, n := range []int{want.first - 1, want.last + 1} {
			if strings.Contains(text, fmt.Sprintf(`id="L%d"`, n)) {
				t.Errorf("%s: got line %d, want %+v", query, n, want)
			}
		}
	}
	b.page(page+"?line=1000", `href="?attempt=1&amp;line=700#h-log">‹ Earlier`, `href="?attempt=1&amp;line=1250#h-log">Later ›`, `href="?attempt=1&amp;line=1000#L1000"`)
	b.page(page+"?line=9999", "No line matches", "Show the end of the log")
	for _, query := range []string{"line=0", "line=x", "level=loud", "stream=stdin", "attempt=9", "q=" + strings.Repeat("x", 201)} {
		if answer := b.get(page + "?" + query); answer.Status != http.StatusBadRequest && answer.Status != http.StatusNotFound {
			t.Errorf("%s: got %d, want a refusal", query, answer.Status)
		}
	}
	if answer := h.signedIn(t, otherToken).get(page + "?q=line"); answer.Status != http.StatusNotFound {
		t.Errorf("got %d of another tenant, want 404", answer.Status)
	}
}

func TestLogIsSearched(t *testing.T) {
	t.Parallel()
	h := setup(t)
	page := "/console/runs/" + h.loggedRun(t, strings.Repeat("quiet\n", 999)+"WARN slow\n\x1b[1;31mERROR\x1b[0m no \x1b[31mDisk\x1b[0m left\nlevel=error msg=disk\n"+strings.Repeat("DISK\n", 400))
	b := h.signedIn(t, ownerToken)
	b.page(page, "2 errors", "1 warning", `level=error#h-log`)
	text := b.page(page+"?level=error", "2 of 1402 lines match", `id="L1001" class="error"`, `id="L1002"`)
	if strings.Contains(text, `id="L1000"`) || strings.Contains(text, "data-follow") {
		t.Error("got a line of another level, or the stream of the log")
	}
	b.page(page+"?level=warn", "3 of 1402", `id="L1000" class="warn"`)
	text = b.page(page+"?q=DiSk", "402 of 1402 lines match; 300 are shown", `<i class="a-red"><mark>Disk</mark></i>`, "msg=<mark>disk</mark>", `href="?attempt=1&amp;line=1301&amp;q=DiSk#h-log">Later matches`, `value="DiSk"`)
	if !strings.Contains(text, `id="L1300"`) || strings.Contains(text, `id="L1301"`) {
		t.Error("got another window of matches, want lines 1001 to 1300")
	}
	b.page(page+"?q=DiSk&line=1301", `id="L1402"`, "102 are shown")
	b.page(page+"?q=disk&level=error", "2 of 1402")
	b.page(page+"?q=none&level=&stream=&line=", "No line matches")
	b.page(page+"?stream=stdout", "1402 of 1402")
}

// TestHostileLog shows long lines, markup and a query with markup.
func TestHostileLog(t *testing.T) {
	t.Parallel()
	h := setup(t)
	bad := `<img src=x onerror=alert(1)>`
	page := "/console/runs/" + h.loggedRun(t, strings.Repeat(strings.Repeat("x", 100_000)+"\n", 8)+bad+" \u202e\x00 \x1b]8;;javascript:alert(1)\x07link\nsafe\u202egnp\n")
	b := h.signedIn(t, ownerToken)
	for _, query := range []string{"", "?line=3", "?q=" + url.QueryEscape(bad), "?q=" + url.QueryEscape("\u202e"), "?q=x&line=2"} {
		text := b.page(page + query)
		for _, never := range []string{"<img", "\u202e", "\x00", "javascript:"} {
			if strings.Contains(text, never) {
				t.Errorf("%s: got %q in the page", query, never)
			}
		}
		if len(text) > 120<<10 {
			t.Errorf("%s: got a page of %d bytes, want at most 120 KiB", query, len(text))
		}
	}
	b.page(page+"?q="+url.QueryEscape(bad), "<mark>&lt;img src=x onerror=alert(1)&gt;</mark>")
}

package console_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func TestFailedRunShowsItsErrorAndTheEndOfItsLog(t *testing.T) {
	t.Parallel()
	h := setup(t)
	id := h.Accept(t)
	h.Start(t, id)
	h.Write(t, id, strings.Repeat("noise\n", 50)+"\x1b[31mfatal\x1b[0m: <img src=x> \u202egnp\r\nlast line")
	h.Report(t, id, contract.Callback{Status: contract.StatusError, Error: "no <script>alert(1)</script> \x1b[31mdisk\x1b[0m"})
	h.Settle(t, id)
	text := h.signedIn(t, ownerToken).page("/console/runs/"+id,
		"Error", "no &lt;script&gt;alert(1)&lt;/script&gt; disk<", "caused by", `<i class="a-red">fatal</i>`, "last line", "⟨U+202E⟩", `id="L52"`, `href="?attempt=1&amp;line=52#L52"`, "/rerun",
		"Timeline", "As a table", "Attempt 1", "<title>Running, attempt 1", `href="../search?q=urn%3Aorch%3Aevent%3A`)
	if strings.Contains(text, "<img") || strings.Contains(text, "/cancel\"") || strings.Contains(text, "\x1b") {
		t.Errorf("got markup of the log, or a cancel of an ended run, in %s", text)
	}
}

func TestRunningRunShowsWhy(t *testing.T) {
	t.Parallel()
	h := setup(t)
	b := h.signedIn(t, ownerToken)
	var ids []string
	for range 3 {
		id := h.Accept(t)
		h.Admit(t, id)
		ids = append(ids, id)
	}
	h.Clock.Advance(time.Minute)
	b.page("/console/runs/"+ids[2], "Why", "Limits that apply", "default", `href="../runs/`+ids[0]+`"`, "1 min ago", "/cancel")
	b.page("/console/runs", "first in the queue")
}

// TestOutputIsADownload checks the preview of an output, and that a browser stores what the API
// returns instead of opening it.
func TestOutputIsADownload(t *testing.T) {
	t.Parallel()
	h := setup(t)
	id := h.Success(t, `a<b>".html`, "application/xml", `<x><script>alert(1)</script></x>`)
	b := h.signedIn(t, ownerToken)
	text := b.page("/console/runs/"+id, "Preview", "&lt;x&gt;&lt;script&gt;alert(1)&lt;/script&gt;&lt;/x", "json/download/"+id)
	if strings.Contains(text, "<script>alert") {
		t.Error("got the output in the page as it is")
	}
	before := h.Run(t, id).Output.ExpiresAt
	b.page("/console/runs/" + id)
	if after := h.Run(t, id).Output.ExpiresAt; !after.Equal(before) {
		t.Errorf("got an expiry changed from %s to %s by a preview", before, after)
	}
	answer := b.get("/console/json/download/" + id)
	if answer.Status != http.StatusOK || !strings.HasPrefix(answer.Header.Get("Content-Disposition"), "attachment") || !strings.Contains(answer.Header.Get("Content-Security-Policy"), "sandbox") ||
		answer.Header.Get("X-Content-Type-Options") != "nosniff" || answer.Body != `<x><script>alert(1)</script></x>` {
		t.Errorf("got %d %v %s, want a download in a sandbox", answer.Status, answer.Header, answer.Body)
	}
	running := h.Accept(t)
	h.Start(t, running)
	h.Write(t, running, "<script>alert(1)</script>\n")
	log := b.get("/console/json/v1/tasks/" + running + "/logs")
	if log.Status != http.StatusOK || !strings.Contains(log.Header.Get("Content-Security-Policy"), "sandbox") || !strings.HasPrefix(log.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("got %d %v, want text in a sandbox", log.Status, log.Header)
	}
	for _, path := range []string{"/console/json/v1/none", "/console/json/v1/tasks/" + id + "/started", "/console/json/console/sign-in", "/console/json/", "/console/json/../v1/runs", "/console/json/%2e%2e/v1/runs", "/console/json//evil.example/"} {
		if answer := b.get(path); answer.Status < 400 {
			t.Errorf("%s: got %d %s, want an error", path, answer.Status, answer.Body)
		}
	}
}

// TestPageReadsTheSessionOnce counts the reads of a page: one of its session, however many
// operations it calls.
func TestPageReadsTheSessionOnce(t *testing.T) {
	t.Parallel()
	h := setup(t)
	id := h.Success(t, "a.xml", "application/xml", "<x/>")
	b := h.signedIn(t, ownerToken)
	for _, path := range []string{"/console/runs", "/console/runs/" + id, "/console/json/v1/runs"} {
		before := h.reads.count()
		if b.page(path); h.reads.count() != before+1 {
			t.Errorf("%s: got %d reads of the session, want 1", path, h.reads.count()-before)
		}
	}
}

// TestFilesAreCachedByTheirContent checks the addresses of style and scripts in a page.
func TestFilesAreCachedByTheirContent(t *testing.T) {
	t.Parallel()
	h := setup(t)
	b := h.browser(t)
	text := b.page("/console/sign-in")
	for name, kind := range map[string]string{"style.css": "text/css; charset=utf-8", "console.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"} {
		_, rest, _ := strings.Cut(text, `./static/`+name+"?v=")
		version, _, _ := strings.Cut(rest, `"`)
		answer := b.get("/console/static/" + name + "?v=" + version)
		if answer.Status != http.StatusOK || answer.Header.Get("Content-Type") != kind || !strings.Contains(answer.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: got %d %v, want %s, immutable", name, answer.Status, answer.Header, kind)
		}
		if answer := b.get("/console/static/" + name); answer.Header.Get("Cache-Control") != "no-cache" {
			t.Errorf("%s without a version: got %q", name, answer.Header.Get("Cache-Control"))
		}
	}
	for _, name := range []string{"none.css", "..%2ftemplates%2fbase.html", "%2e%2e"} {
		if answer := b.get("/console/static/" + name); answer.Status != http.StatusNotFound {
			t.Errorf("%s: got %d, want 404", name, answer.Status)
		}
	}
}

// TestFilesAreCompressed reads the style with and without permission to compress it.
func TestFilesAreCompressed(t *testing.T) {
	t.Parallel()
	b := setup(t).browser(t)
	for accepted, want := range map[string]string{
		"gzip, deflate, br, zstd": "gzip", "br;q=1, GZIP; q=0.5": "gzip", "identity": "", "gzip;q=0, br": "", "gzip; q=x": "", "xgzip": "",
	} {
		answer := b.send(http.MethodGet, "/console/static/style.css", "", "Accept-Encoding", accepted)
		content := answer.Body
		if want == "gzip" {
			r, err := gzip.NewReader(strings.NewReader(answer.Body))
			if err != nil {
				t.Errorf("%s: got %v", accepted, err)
				continue
			}
			all, err := io.ReadAll(r)
			if content = string(all); err != nil || len(answer.Body) > len(content)/3 {
				t.Errorf("%s: got %d of %d bytes and %v, want at most a third", accepted, len(answer.Body), len(content), err)
			}
		}
		if answer.Header.Get("Content-Encoding") != want || answer.Header.Get("Vary") != "Accept-Encoding" || !strings.Contains(content, "--accent") {
			t.Errorf("%s: got %v and %.40q, want the style, encoding %q", accepted, answer.Header, content, want)
		}
	}
}

// TestRunIsPinnedFromItsPage pins an ended run and unpins it. It also sends what the page does
// not, as another tenant, and without the scope.
func TestRunIsPinnedFromItsPage(t *testing.T) {
	t.Parallel()
	h := setup(t)
	id := h.Success(t, "report.txt", "text/plain", "report")
	b := h.signedIn(t, ownerToken)
	path := "/console/runs/" + id
	b.page(path, ">Pin<", "Kept until")
	for _, row := range []struct {
		what, done string
		status     int
		held       bool
	}{
		{"pin", "pin", http.StatusSeeOther, true},
		{"pin", "pin", http.StatusSeeOther, true},
		{"", "", http.StatusBadRequest, true},
		{"../cancel", "", http.StatusBadRequest, true},
		{"<script>", "", http.StatusBadRequest, true},
		{"unpin", "unpin", http.StatusSeeOther, false},
	} {
		answer := b.post(path+"/pin", "what", row.what)
		if to := answer.Header.Get("Location"); answer.Status != row.status || row.done != "" && !strings.HasSuffix(to, "?done="+row.done) {
			t.Errorf("%q: got %d to %q, want %d", row.what, answer.Status, to, row.status)
		}
		if r := h.Run(t, id); r.Held != row.held || (r.Pin != nil) != row.held || r.Output.ExpiresAt.IsZero() != row.held {
			t.Errorf("%q: got held %t and pin %v, want %t", row.what, r.Held, r.Pin, row.held)
		}
		if row.held {
			b.page(path, ">Unpin<", "Pinned", "the run expires")
		}
	}
	for name, token := range map[string]string{"another tenant": otherToken, "without runs:write": readerToken} {
		stranger := h.signedIn(t, token)
		stranger.get("/console/runs")
		if answer := stranger.post(path+"/pin", "what", "pin"); answer.Status != http.StatusForbidden && answer.Status != http.StatusNotFound || h.Run(t, id).Held {
			t.Errorf("%s: got %d %s, want a refusal", name, answer.Status, answer.Body)
		}
	}
}

//go:build browser

package browser_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// The texts that no page may run or let change what it shows.
const (
	markup = `<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>`
	scheme = `javascript:window.pwned=1`
	bidi   = "safe\u202Egnp.exe"
	quotes = `"><svg onload=window.pwned=1>'{{.}}`
)

// hostile are texts of clients and of workers.
var hostile = []string{markup, scheme, bidi, quotes}

// TestHostileTexts puts texts into each field, and opens the pages that show them. A script that
// runs, and a violation of the policy, fail the test.
func TestHostileTexts(t *testing.T) {
	w := shared(t)
	all := strings.Join(hostile, " ")
	job := object{
		"id": "hostile", "name": all[:min(len(all), 200)], "image": "exec:/bin/sh", "schedule": "0 0 1 1 *", "output": object{"path": "out.html"},
		"command": []string{"-c", `printf '%s\n' "$TEXT" "$TEXT" >&2; printf '\033]8;;` + scheme + `\033\\link\033]8;;\033\\ \033[31mred\033[0m a\000b\n'; head -c 100000 /dev/zero | tr '\0' x; echo; printf '%s' "$TEXT" >out.html; exit $CODE`, all},
		"env":     object{"TEXT": all, "CODE": "1"}, "retryConfig": object{"maxRetries": 0},
	}
	if _, err := w.call(http.MethodPut, "/v1/jobs/hostile", job); err != nil {
		t.Fatal(err)
	}
	failed, err := w.job("hostile", "Failed")
	if err != nil {
		t.Fatal(err)
	}
	job["env"] = object{"TEXT": all, "CODE": "0"}
	if _, err := w.call(http.MethodPut, "/v1/jobs/hostile", job); err != nil {
		t.Fatal(err)
	}
	completed, err := w.job("hostile", "Completed")
	if err != nil {
		t.Fatal(err)
	}
	each := object{"image": "exec:/bin/sh", "command": []string{"-c", `printf '%s' "$SORTIE_ITEM" >&2; exit 1`}, "items": append([]string{all}, hostile...), "maxFailures": 9, "retryConfig": object{"maxRetries": 0}}
	if _, err := w.call(http.MethodPut, "/v1/jobs/hostile-items", each); err != nil {
		t.Fatal(err)
	}
	parent, err := w.parent("hostile-items")
	if err != nil {
		t.Fatal(err)
	}
	b := signedIn(t, w.server)
	b.permit("404", "400")
	for _, path := range []string{
		"runs/" + parent, "runs/" + parent + "/children", "runs/" + parent + ".0", "runs/" + parent + ".3", "runs",
		"runs/" + failed, "runs/" + completed, "runs?jobId=hostile", "overview", "jobs", "jobs/hostile", "jobs/hostile/document", "jobs/hostile/document?version=1", "jobs/hostile/calendar",
		"events?jobId=hostile", "search?q=" + url.QueryEscape(all), "runs?jobId=" + url.QueryEscape(markup), "jobs?q=" + url.QueryEscape(quotes), "events?types=" + url.QueryEscape(markup),
		"runs/" + url.PathEscape(markup), "jobs/" + url.PathEscape(quotes), "inference/playground?model=" + url.QueryEscape(quotes), "sign-in?next=" + url.QueryEscape(scheme),
	} {
		t.Run(path[:min(len(path), 40)], func(t *testing.T) {
			b := b.in(t)
			b.open(path)
			if value[bool](b, `"pwned" in window`) {
				t.Error("a script of a text has run")
			}
			if n := value[int](b, `document.querySelectorAll("main img, main script:not([src]), main [onerror], main [onload], a[href^='javascript:' i]").length`); n > 0 {
				t.Errorf("got %d elements of a text", n)
			}
			if shown := b.text("main"); strings.Contains(shown, "\u202E") || strings.Contains(shown, "\x00") {
				t.Error("got a control character as it is, want a visible sign")
			}
		})
	}
	b.open("runs/" + failed)
	b.has(markup, scheme, "red")
	b.open("runs/" + completed)
	b.has("out.html", markup)

	// The output is a file to save, and never a page.
	b.do(evaluated(`fetch(document.querySelector("a[download]").href).then(r => { window.kind = r.headers.get("Content-Disposition") + "; " + r.headers.get("Content-Security-Policy"); })`))
	b.awaits("the download", `window.kind`)
	if kind := value[string](b, `window.kind`); !strings.HasPrefix(kind, "attachment") {
		t.Errorf("got the disposition %q, want an attachment", kind)
	}
}

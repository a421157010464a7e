package console_test

import (
	"bytes"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"net/http"
	"strings"
	"testing"
)

// produce returns a run of a program that has ended with an output.
func (h *home) produce(t *testing.T, name, kind, content string) string {
	t.Helper()
	id := h.program(t, fmt.Sprintf(`{"image":"registry.example.org/report:1","completion":"callback","output":{"path":"out","contentType":%q}}`, kind))
	h.Start(t, id)
	h.Succeed(t, id, name, kind, content)
	return id
}

//nolint:paralleltest,tparallel // the cases share one system
func TestOutputsArePreviewed(t *testing.T) {
	t.Parallel()
	h := setup(t)
	b := h.signedIn(t, ownerToken)
	for name, each := range map[string]struct{ kind, content, want string }{
		"a JSON object":    {"application/json", `{"a":[1,"<b>"]}`, "{\n  &#34;a&#34;: [\n    1,\n    &#34;&lt;b&gt;&#34;\n  ]\n}</pre>"},
		"a JSON line":      {"application/json", "[1]\n", "[\n  1\n]"},
		"no line end":      {"text/plain", "the last byte!", ">the last byte!</pre>"},
		"one byte":         {"text/plain", "!", ">!</pre>"},
		"malformed JSON":   {"application/json", `{"a":<script>`, "{&#34;a&#34;:&lt;script&gt;</pre>"},
		"a table":          {"text/csv", "region,orders\n<b>,1\"2\n\u202e,3\n", `<th scope="col"><bdi>region</bdi></th><th scope="col"><bdi>orders</bdi></th></tr></thead><tbody><tr><td><bdi>&lt;b&gt;</bdi></td><td><bdi>1&#34;2</bdi></td></tr><tr><td><bdi>⟨U+202E⟩</bdi>`},
		"one column":       {"text/csv", "a\nb\n", "<pre"},
		"a table of tabs":  {"text/tab-separated-values", "a\tb\n1\t2\n", "<td><bdi>2</bdi>"},
		"markup":           {"text/html", "<script>alert(1)</script>\n", "&lt;script&gt;alert(1)&lt;/script&gt;"},
		"a drawing":        {"image/svg+xml", "<svg onload='alert(1)'/>\n", "&lt;svg onload="},
		"text without end": {"text/plain; charset=utf-8", strings.Repeat("x", 40_000), "x…</pre>"},
	} {
		t.Run(name, func(t *testing.T) {
			id := h.produce(t, "f", each.kind, each.content)
			before := h.Run(t, id).Output.ExpiresAt
			text := b.page("/console/runs/"+id, "Preview", each.want)
			if after := h.Run(t, id).Output.ExpiresAt; !after.Equal(before) {
				t.Errorf("got an expiry changed from %s to %s by a preview", before, after)
			}
			for _, never := range []string{"<script>alert", "<svg onload", "<b>", "\u202e"} {
				if strings.Contains(text, never) {
					t.Errorf("got %q in the page", never)
				}
			}
			if answer := b.get("/console/runs/" + id + "/picture"); answer.Status != http.StatusNotFound {
				t.Errorf("got %d for an output that is no picture, want 404", answer.Status)
			}
		})
	}
	rows := b.page("/console/runs/"+h.produce(t, "f", "text/csv", strings.Repeat("a,b\n", 5000)), "The first 99 rows")
	if strings.Count(rows, "<tr>") > 200 {
		t.Error("got all rows of a large table")
	}
}

func TestPicturesAreServedAsSuch(t *testing.T) {
	t.Parallel()
	h := setup(t)
	b := h.signedIn(t, ownerToken)
	picture := image.NewPaletted(image.Rect(0, 0, 9, 9), nil)
	for kind, encode := range map[string]func(*bytes.Buffer) error{
		"image/png":  func(w *bytes.Buffer) error { return png.Encode(w, image.NewGray(picture.Rect)) },
		"image/jpeg": func(w *bytes.Buffer) error { return jpeg.Encode(w, image.NewGray(picture.Rect), nil) },
		"image/gif":  func(w *bytes.Buffer) error { return gif.Encode(w, image.NewGray(picture.Rect), nil) },
	} {
		var content bytes.Buffer
		if err := encode(&content); err != nil {
			t.Fatal(err)
		}
		id := h.produce(t, `"><script>.png`, kind, content.String())
		before := h.Run(t, id).Output.ExpiresAt
		b.page("/console/runs/"+id, `<img src="../runs/`+id+`/picture" alt="The output &#34;&gt;&lt;script&gt;.png"`)
		answer := b.get("/console/runs/" + id + "/picture")
		if answer.Body != content.String() || answer.Header.Get("Content-Type") != kind || answer.Header.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(answer.Header.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("%s: got %d %v and %d bytes, want the picture in a sandbox", kind, answer.Status, answer.Header, len(answer.Body))
		}
		if after := h.Run(t, id).Output.ExpiresAt; !after.Equal(before) {
			t.Errorf("%s: got an expiry changed from %s to %s by a preview", kind, before, after)
		}
		if answer := h.signedIn(t, otherToken).get("/console/runs/" + id + "/picture"); answer.Status != http.StatusNotFound {
			t.Errorf("%s: got %d of another tenant, want 404", kind, answer.Status)
		}
		if answer := h.browser(t).get("/console/runs/" + id + "/picture"); answer.Status != http.StatusSeeOther {
			t.Errorf("%s: got %d without a session, want the sign-in", kind, answer.Status)
		}
	}
}

package porttest

import (
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/port"
)

// fetch requests a URL without credentials and returns the status, body and headers of the
// response.
func (h OutputsHarness) fetch(t *testing.T, method, address string, header http.Header, body ...string) (int, string, http.Header) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(strings.Join(body, "")))
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(request.Header, header)
	answer, err := h.HTTP.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text), answer.Header
}

// tampered returns URLs that each differ from a signed URL in one property.
func tampered(t *testing.T, signed string) map[string]string {
	t.Helper()
	with := func(change func(*url.URL, url.Values)) string {
		u, err := url.Parse(signed)
		if err != nil {
			t.Fatal(err)
		}
		query := u.Query()
		change(u, query)
		u.RawQuery = query.Encode()
		return u.String()
	}
	return map[string]string{
		"another key":       with(func(u *url.URL, _ url.Values) { u.Path = strings.Replace(u.Path, "/t1/", "/t2/", 1) }),
		"a longer lifetime": with(func(_ *url.URL, q url.Values) { q.Set("X-Amz-Expires", "3600") }),
		"another signature": with(func(_ *url.URL, q url.Values) { q.Set("X-Amz-Signature", strings.Repeat("0", 64)) }),
		"no signature":      with(func(u *url.URL, q url.Values) { clear(q) }),
	}
}

func outputsPresignGet(t *testing.T, h OutputsHarness) {
	const key = "exports/t1/a.bin"
	h.keep(t, key, "0123456789")
	h.keep(t, "exports/t2/a.bin", "not yours")
	h.put(t, key, "the worker's")
	const disposition = `attachment; filename="a _.xml"; filename*=UTF-8''a%20%C3%B6.xml`
	signed, err := h.Outputs.PresignGet(t.Context(), key, disposition, "application/xml", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		status, text, header := h.fetch(t, http.MethodGet, signed, nil)
		if status != http.StatusOK || text != "0123456789" {
			t.Fatalf("got %d %q", status, text)
		}
		if got := header.Get("Content-Type"); got != "application/xml" {
			t.Errorf("got Content-Type %s", got)
		}
		if got := header.Get("Content-Disposition"); got != disposition {
			t.Errorf("got Content-Disposition %s, want %s", got, disposition)
		}
	}
	status, text, header := h.fetch(t, http.MethodGet, signed, http.Header{"Range": {"bytes=2-4"}})
	if status != http.StatusPartialContent || text != "234" || header.Get("Content-Range") != "bytes 2-4/10" {
		t.Errorf("range request: got %d %q %q", status, text, header.Get("Content-Range"))
	}
	for what, address := range tampered(t, signed) {
		if status, text, _ := h.fetch(t, http.MethodGet, address, nil); status != http.StatusForbidden {
			t.Errorf("with %s: got %d %q", what, status, text)
		}
	}
	if status, _, _ := h.fetch(t, http.MethodDelete, signed, nil); status != http.StatusForbidden {
		t.Errorf("another method: got %d", status)
	}
	old, err := h.OutputsAt(time.Now().Add(-time.Hour)).PresignGet(t.Context(), key, disposition, "application/xml", 59*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if status, text, _ := h.fetch(t, http.MethodGet, old, nil); status != http.StatusForbidden {
		t.Errorf("expired URL: got %d %q", status, text)
	}
	young, err := h.OutputsAt(time.Now().Add(-time.Hour)).PresignGet(t.Context(), key, disposition, "application/xml", 2*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if status, text, _ := h.fetch(t, http.MethodGet, young, nil); status != http.StatusOK {
		t.Errorf("valid URL: got %d %q", status, text)
	}
}

func outputsPresignPut(t *testing.T, h OutputsHarness) {
	const key = "exports/t1/a.json"
	signed, err := h.Outputs.PresignPut(t.Context(), key, "application/json", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	right := http.Header{"Content-Type": {"application/json"}}
	for what, address := range tampered(t, signed) {
		if status, text, _ := h.fetch(t, http.MethodPut, address, right, "{}"); status != http.StatusForbidden {
			t.Errorf("with %s: got %d %q", what, status, text)
		}
	}
	if status, text, _ := h.fetch(t, http.MethodPut, signed, http.Header{"Content-Type": {"text/html"}}, "{}"); status != http.StatusForbidden {
		t.Errorf("another content type: got %d %q", status, text)
	}
	old, err := h.OutputsAt(time.Now().Add(-time.Hour)).PresignPut(t.Context(), key, "application/json", 59*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if status, text, _ := h.fetch(t, http.MethodPut, old, right, "{}"); status != http.StatusForbidden {
		t.Errorf("expired URL: got %d %q", status, text)
	}
	h.missing(t, port.Uploads, key)
	if status, text, _ := h.fetch(t, http.MethodPut, signed, right, `{"a":1}`); status != http.StatusOK {
		t.Fatalf("got %d %q", status, text)
	}
	h.missing(t, port.Accepted, key)
	text, object := h.read(t, port.Uploads, key, port.Span{})
	if text != `{"a":1}` || object.ContentType != "application/json" {
		t.Errorf("got upload %q, %+v", text, object)
	}
}

func outputsPresignTTL(t *testing.T, h OutputsHarness) {
	tests := []struct {
		name string
		ttl  time.Duration
		ok   bool
	}{
		{"nothing", 0, false},
		{"less than a second", 999 * time.Millisecond, false},
		{"a second", time.Second, true},
		{"seven days", 7 * 24 * time.Hour, true},
		{"more than seven days", 7*24*time.Hour + time.Second, false},
	}
	for _, test := range tests {
		_, get := h.Outputs.PresignGet(t.Context(), "exports/t1/a", "attachment", "text/plain", test.ttl)
		_, put := h.Outputs.PresignPut(t.Context(), "exports/t1/a", "text/plain", test.ttl)
		if (get == nil) != test.ok || (put == nil) != test.ok {
			t.Errorf("%s: got %v from PresignGet and %v from PresignPut", test.name, get, put)
		}
	}
}

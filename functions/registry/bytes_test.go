package registry_test

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// noise returns content that is not text and is longer than the part that a server stores in
// memory.
func noise(t *testing.T) string {
	t.Helper()
	content := make([]byte, 600_000)
	if _, err := rand.Read(content); err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestBytesAreStoredUnderTheirDigest(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	parent, _ := apitest.Decoded[contract.ArtifactCreated](t, stage, "POST", path, `{"kind": "note", "content": 1}`, 201)
	query := url.Values{"kind": {"page"}, "tags": {"a b,c"}, "parent": {parent.ID}, "metadata": {`{"title": "ž"}`}}.Encode()
	for name, content := range map[string]string{"empty": "", "short": "<script>alert(1)</script>", "long": noise(t), "the bytes of a document": `{"b": 1}`} {
		want := fmt.Sprintf("%x", sha256.Sum256([]byte(content)))
		a, header := apitest.Decoded[contract.ArtifactCreated](t, stage, "POST", path+"?"+query, content, 201, "Content-Type", "Text/HTML; Charset=utf-8")
		if a.ID != want || a.Kind != "page" || header.Get("Location") != path+"/"+want {
			t.Errorf("%s: got %+v, want the id %s", name, a, want)
		}
		again, _ := apitest.Decoded[contract.ArtifactCreated](t, stage, "POST", path+"?kind=other", content, 200, "Content-Type", "application/pdf")
		if diff := cmp.Diff(a, again); diff != "" {
			t.Errorf("%s: the same content: want -, got +\n%s", name, diff)
		}
		got := stage.Call(t, "GET", path+"/sha256:"+a.ID, "")
		if got.Status != 200 || got.Body != content {
			t.Errorf("%s: got %d with %d bytes, want the %d that were stored", name, got.Status, len(got.Body), len(content))
		}
		for header, want := range map[string]string{
			"Content-Type": "text/html; charset=utf-8", "X-Content-Type-Options": "nosniff", "Content-Disposition": "attachment", "Etag": `"` + a.ID + `"`,
		} {
			if got.Header.Get(header) != want {
				t.Errorf("%s: got %s %q, want %q", name, header, got.Header.Get(header), want)
			}
		}
		if head := stage.Call(t, "HEAD", path+"/"+a.ID, ""); head.Status != 200 || head.Body != "" || head.Header.Get("Content-Length") != fmt.Sprint(len(content)) {
			t.Errorf("%s: got %d %v, want its size without the content", name, head.Status, head.Header)
		}
		if known := stage.Call(t, "GET", path+"/"+a.ID, "", "If-None-Match", `"`+a.ID+`"`); known.Status != 304 {
			t.Errorf("%s: got %d, want 304 for content that the client has", name, known.Status)
		}
		record, _ := apitest.Decoded[contract.ArtifactSummary](t, stage, "GET", path+"/"+a.ID+"?content=false", "", 200)
		wanted := contract.ArtifactSummary{ArtifactCreated: a, MediaType: "text/html; charset=utf-8", Size: int64(len(content)), Parent: &parent.ID, Metadata: []byte(`{"title":"ž"}`)}
		wanted.Tags = []string{"a", "b,c"}
		if diff := cmp.Diff(wanted, record); diff != "" {
			t.Errorf("%s: want -, got +\n%s", name, diff)
		}
	}
}

func TestMalformedBytesNameTheField(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	for _, row := range []struct {
		query, kind, body, field string
		status                   int
	}{
		{"", "text/plain", "x", "kind", 400},
		{"kind=A", "text/plain", "x", "kind", 400},
		{"kind=note&tags=a+a", "text/plain", "x", "tags", 400},
		{"kind=note&tags=", "text/plain", "x", "tags", 400},
		{"kind=note&tags=a++b", "text/plain", "x", "tags", 400},
		{"kind=note&parent=x", "text/plain", "x", "parent", 400},
		{"kind=note&parent=" + strings.Repeat("0", 64), "text/plain", "x", "parent", 422},
		{"kind=note&metadata=%5B%5D", "text/plain", "x", "metadata", 400},
		{"kind=note&metadata=%7B", "text/plain", "x", "metadata", 400},
		{"kind=note&metadata=%7B%7D%2C%22kind%22%3A1", "text/plain", "x", "metadata", 400},
		{"kind=note&metadata=%7B%22a%22%3A1%2C%22a%22%3A2%7D", "text/plain", "x", "metadata.a", 400},
		{"kind=note&other=1", "text/plain", "x", "other", 400},
		{"kind=note", "application/json", `{"kind": "note", "content": 1}`, "", 400},
		{"kind=note", "", "x", "Content-Type", 415},
		{"kind=note", "text", "x", "Content-Type", 415},
		{"kind=note", "multipart/form-data; boundary=x", "x", "Content-Type", 415},
		{"kind=note", "application/x-www-form-urlencoded", "x", "Content-Type", 415},
		{"kind=note", "text/plain", strings.Repeat("x", 4<<20+1), "", 413},
	} {
		p, _ := apitest.Decoded[contract.Problem](t, stage, "POST", path+"?"+row.query, row.body, row.status, "Content-Type", row.kind)
		if p.Field != row.field {
			t.Errorf("%s %.80q: got field %q (%s), want %q", row.query, row.body, p.Field, p.Detail, row.field)
		}
	}
	if p, _ := apitest.Decoded[contract.Problem](t, stage, "POST", path+"?kind=note", "x", 415, "Content-Type", "text/plain", "Content-Encoding", "gzip"); p.Field != "Content-Encoding" {
		t.Errorf("got the field %q, want Content-Encoding", p.Field)
	}
	apitest.Decoded[contract.Problem](t, stage, "GET", path+"/"+strings.Repeat("0", 64)+"?content=no", "", 400)
	if n := stage.Objects.Count(port.Accepted); n != 0 {
		t.Errorf("got %d objects, want nothing written for a refused request", n)
	}
}

// TestChunkedBytesAreLimited sends a body without a length that is too large.
func TestChunkedBytesAreLimited(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, stage.URL+path+"?kind=note", io.LimitReader(zeros{}, 4<<20+100))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/octet-stream")
	answer, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusRequestEntityTooLarge || stage.Objects.Count(port.Accepted) != 0 {
		t.Errorf("got %d and %d objects, want 413 and none", answer.StatusCode, stage.Objects.Count(port.Accepted))
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestBrokenUploadLeavesNothing closes the connection in the middle of a body.
func TestBrokenUploadLeavesNothing(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	for _, sent := range []int{10, 500_000} {
		conn, err := net.Dial("tcp", stage.Server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(conn, "POST %s?kind=note HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 600000\r\n\r\n%s", path, bytes.Repeat([]byte("x"), sent)); err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
	stage.AwaitRequests(t, 2)
	if list, _ := apitest.Decoded[contract.ArtifactList](t, stage, "GET", path, "", 200); len(list.Artifacts) != 0 || stage.Objects.Count(port.Accepted) != 0 {
		t.Errorf("got %+v and %d objects, want nothing of a body that is not complete", list, stage.Objects.Count(port.Accepted))
	}
}

func TestBrokenContentClosesTheConnection(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	a, _ := apitest.Decoded[contract.ArtifactCreated](t, stage, "POST", path+"?kind=note", "0123456789", 201, "Content-Type", "text/plain")
	stage.Objects.BreakAfter(4)
	answer, err := http.Get(stage.URL + path + "/" + a.ID)
	if err != nil {
		return // before the status
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err == nil {
		t.Errorf("got %q, want an error for content that is not complete", text)
	}
}

// TestPartsOfBytes requests ranges of content that is not JSON, and of a document, which does
// not support ranges.
func TestPartsOfBytes(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	const content = "0123456789"
	a, _ := apitest.Decoded[contract.ArtifactCreated](t, stage, "POST", path+"?kind=page", content, 201, "Content-Type", "text/plain")
	etag := `"` + a.ID + `"`
	for name, row := range map[string]struct {
		headers     []string
		status      int
		body, place string
	}{
		"whole":            {nil, 200, content, ""},
		"beginning":        {[]string{"Range", "bytes=0-3"}, 206, "0123", "bytes 0-3/10"},
		"rest":             {[]string{"Range", "bytes=4-"}, 206, "456789", "bytes 4-9/10"},
		"end":              {[]string{"Range", "bytes=-3"}, 206, "789", "bytes 7-9/10"},
		"beyond the end":   {[]string{"Range", "bytes=8-99"}, 206, "89", "bytes 8-9/10"},
		"more than all":    {[]string{"Range", "bytes=-99"}, 206, content, "bytes 0-9/10"},
		"outside":          {[]string{"Range", "bytes=10-"}, 416, "", "bytes */10"},
		"nothing":          {[]string{"Range", "bytes=-0"}, 416, "", "bytes */10"},
		"several":          {[]string{"Range", "bytes=0-1,3-4"}, 200, content, ""},
		"other unit":       {[]string{"Range", "lines=0-1"}, 200, content, ""},
		"backwards":        {[]string{"Range", "bytes=3-1"}, 200, content, ""},
		"same version":     {[]string{"Range", "bytes=0-3", "If-Range", etag}, 206, "0123", "bytes 0-3/10"},
		"other version":    {[]string{"Range", "bytes=0-3", "If-Range", `"other"`}, 200, content, ""},
		"weak version":     {[]string{"Range", "bytes=0-3", "If-Range", "W/" + etag}, 200, content, ""},
		"date":             {[]string{"Range", "bytes=0-3", "If-Range", "Fri, 02 Jan 2026 03:04:05 GMT"}, 200, content, ""},
		"known and ranged": {[]string{"Range", "bytes=0-3", "If-None-Match", etag}, 304, "", ""},
	} {
		got := stage.Call(t, "GET", path+"/"+a.ID, "", row.headers...)
		if got.Status != row.status || row.status < 300 && got.Body != row.body || got.Header.Get("Content-Range") != row.place {
			t.Errorf("%s: got %d %q of %q, want %d %q of %q", name, got.Status, got.Body, got.Header.Get("Content-Range"), row.status, row.body, row.place)
		}
		if ok := row.status == 200 || row.status == 206; ok && (got.Header.Get("Accept-Ranges") != "bytes" || got.Header.Get("Etag") != etag) {
			t.Errorf("%s: got %v, want the entity tag, and bytes as the unit", name, got.Header)
		}
	}
	if head := stage.Call(t, "HEAD", path+"/"+a.ID, "", "Range", "bytes=0-3"); head.Status != 200 || head.Header.Get("Content-Length") != "10" {
		t.Errorf("got %d %v for HEAD, want the whole", head.Status, head.Header)
	}
	document, _ := apitest.Decoded[contract.ArtifactCreated](t, stage, "POST", path, `{"kind": "note", "content": "0123456789"}`, 201)
	if got := stage.Call(t, "GET", path+"/"+document.ID, "", "Range", "bytes=0-3"); got.Status != 200 {
		t.Errorf("got %d for a document, want the whole", got.Status)
	}
	long := noise(t)
	b, _ := apitest.Decoded[contract.ArtifactCreated](t, stage, "POST", path+"?kind=page", long, 201, "Content-Type", "application/pdf")
	if got := stage.Call(t, "GET", path+"/"+b.ID, "", "Range", "bytes=300000-"); got.Status != 206 || got.Body != long[300_000:] {
		t.Errorf("got %d with %d bytes, want the %d of the rest", got.Status, len(got.Body), len(long)-300_000)
	}
}

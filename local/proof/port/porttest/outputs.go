package porttest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// OutputsHarness is an object store with two empty buckets.
type OutputsHarness struct {
	// Outputs is the adapter under test.
	Outputs port.Outputs
	// OutputsAt returns an adapter for the same store with a fixed clock.
	OutputsAt func(now time.Time) port.Outputs
	// Put writes size bytes of body to Uploads, as a worker does.
	Put func(t *testing.T, key, contentType string, body io.ReaderAt, size int64)
	// Begin starts a multipart upload to Uploads and does not complete it.
	Begin func(t *testing.T, key string)
	// Unfinished returns the number of incomplete multipart uploads with the prefix.
	Unfinished func(t *testing.T, prefix string) int
	// HTTP is the client for presigned URLs.
	HTTP *http.Client
	// Big is the size in bytes above which the adapter copies an object in parts.
	Big int64
}

// Outputs is the conformance suite of port.Outputs. setup is called once for each test.
func Outputs(t *testing.T, setup func(t *testing.T) OutputsHarness) {
	t.Helper()
	tests := []struct {
		name string
		run  func(*testing.T, OutputsHarness)
	}{
		{"head after put", outputsHead},
		{"calls at once", outputsAtOnce},
		{"accept copies the object", outputsAccept},
		{"accept refuses a changed object", outputsAcceptChanged},
		{"accept copies large objects", outputsAcceptLarge},
		{"open reads spans", outputsOpen},
		{"put writes the whole object", outputsPut},
		{"upload writes large objects", outputsUpload},
		{"replace needs the expected object", outputsReplace},
		{"one of concurrent replacements is applied", outputsReplaceRace},
		{"presigned get", outputsPresignGet},
		{"presigned put", outputsPresignPut},
		{"lifetime of presigned URLs", outputsPresignTTL},
		{"delete is idempotent", outputsDelete},
		{"delete by prefix", outputsDeletePrefix},
		{"keys with special characters", outputsKeys},
		{"ended context", outputsContext},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, setup(t))
		})
	}
}

// outputsAtOnce calls the store concurrently, like a server. The race detector then finds
// unprotected shared state.
func outputsAtOnce(t *testing.T, h OutputsHarness) {
	h.put(t, "exports/t/a", "a")
	var callers sync.WaitGroup
	for range 16 {
		callers.Go(func() {
			for range 25 {
				object, err := h.Outputs.Head(t.Context(), port.Uploads, "exports/t/a")
				if err != nil || object.Size != 1 {
					t.Errorf("got %+v, %v, want an object of 1 byte", object, err)
				}
			}
		})
	}
	callers.Wait()
}

func (h OutputsHarness) put(t *testing.T, key, body string) port.Object {
	t.Helper()
	h.Put(t, key, "text/plain", strings.NewReader(body), int64(len(body)))
	return h.head(t, port.Uploads, key)
}

func (h OutputsHarness) keep(t *testing.T, key, body string) port.Object {
	t.Helper()
	kept, err := h.Outputs.Accept(t.Context(), key, h.put(t, key, body).ETag)
	if err != nil {
		t.Fatalf("cannot accept %s: %v", key, err)
	}
	return kept
}

func (h OutputsHarness) head(t *testing.T, bucket port.Bucket, key string) port.Object {
	t.Helper()
	object, err := h.Outputs.Head(t.Context(), bucket, key)
	if err != nil {
		t.Fatalf("cannot look up %s in %s: %v", key, bucket, err)
	}
	return object
}

func (h OutputsHarness) read(t *testing.T, bucket port.Bucket, key string, span port.Span) (string, port.Object) {
	t.Helper()
	body, object, err := h.Outputs.Open(t.Context(), bucket, key, span)
	if err != nil {
		t.Fatalf("cannot open %s in %s: %v", key, bucket, err)
	}
	text, err := io.ReadAll(body)
	if err := errors.Join(err, body.Close()); err != nil {
		t.Fatalf("cannot read %s in %s: %v", key, bucket, err)
	}
	return string(text), object
}

func (h OutputsHarness) missing(t *testing.T, bucket port.Bucket, key string) {
	t.Helper()
	if _, err := h.Outputs.Head(t.Context(), bucket, key); !errors.Is(err, port.ErrNotFound) {
		t.Errorf("%s in %s: got %v, want ErrNotFound", key, bucket, err)
	}
}

func outputsHead(t *testing.T, h OutputsHarness) {
	h.missing(t, port.Uploads, "exports/t1/a.txt")
	put := h.put(t, "exports/t1/a.txt", "hello")
	if put.Key != "exports/t1/a.txt" || put.Size != 5 || put.ContentType != "text/plain" || put.ModifiedAt.IsZero() {
		t.Errorf("got object %+v", put)
	}
	if !strings.HasPrefix(put.ETag, `"`) || !strings.HasSuffix(put.ETag, `"`) || len(put.ETag) < 3 {
		t.Errorf("got ETag %s, want one in quotes", put.ETag)
	}
	h.missing(t, port.Accepted, "exports/t1/a.txt")
	h.missing(t, port.Uploads, "exports/t1")
	if again := h.put(t, "exports/t1/a.txt", "hallo"); again.ETag == put.ETag {
		t.Error("got the same ETag for other bytes")
	}
	if empty := h.put(t, "exports/t1/empty", ""); empty.Size != 0 {
		t.Errorf("got %d bytes, want an empty object", empty.Size)
	}
	if _, err := h.Outputs.Head(t.Context(), "unknown", "exports/t1/a.txt"); err == nil {
		t.Error("got success for an unknown bucket")
	}
}

func outputsAccept(t *testing.T, h OutputsHarness) {
	const key = "exports/t1/a.txt"
	put := h.put(t, key, "hello")
	for range 2 { // Accept is idempotent
		kept, err := h.Outputs.Accept(t.Context(), key, put.ETag)
		if err != nil {
			t.Fatal(err)
		}
		if kept.Key != key || kept.Size != 5 || kept.ContentType != "text/plain" || kept.ETag == "" {
			t.Errorf("got accepted object %+v", kept)
		}
		if diff := cmp.Diff(h.head(t, port.Accepted, key), kept); diff != "" {
			t.Errorf("Head and Accept differ (-head +accept):\n%s", diff)
		}
	}
	h.put(t, key, "changed by the worker")
	if err := h.Outputs.Delete(t.Context(), port.Uploads, key); err != nil {
		t.Fatal(err)
	}
	if text, _ := h.read(t, port.Accepted, key, port.Span{}); text != "hello" {
		t.Errorf("got accepted content %q, want it unchanged", text)
	}
}

func outputsAcceptChanged(t *testing.T, h OutputsHarness) {
	const key = "exports/t1/a.txt"
	if _, err := h.Outputs.Accept(t.Context(), key, `"0123456789abcdef0123456789abcdef"`); !errors.Is(err, port.ErrNotFound) {
		t.Errorf("accept of a missing object: got %v, want ErrNotFound", err)
	}
	looked := h.put(t, key, "hello")
	h.put(t, key, "hallo")
	for _, etag := range []string{looked.ETag, ""} {
		if _, err := h.Outputs.Accept(t.Context(), key, etag); !errors.Is(err, port.ErrChanged) {
			t.Errorf("accept with ETag %q: got %v, want ErrChanged", etag, err)
		}
	}
	h.missing(t, port.Accepted, key)
}

func outputsAcceptLarge(t *testing.T, h OutputsHarness) {
	const key = "exports/t1/big.bin"
	body := pattern(2*h.Big + 12_345)
	h.Put(t, key, "application/x-big", body, body.size())
	put := h.head(t, port.Uploads, key)
	if put.Size != body.size() || put.ContentType != "application/x-big" {
		t.Fatalf("got upload %+v", put)
	}
	kept, err := h.Outputs.Accept(t.Context(), key, put.ETag)
	if err != nil {
		t.Fatal(err)
	}
	if kept.Size != body.size() || kept.ContentType != "application/x-big" {
		t.Errorf("got accepted object %+v", kept)
	}
	if _, err := h.Outputs.Accept(t.Context(), key, `"0123456789abcdef0123456789abcdef"`); !errors.Is(err, port.ErrChanged) {
		t.Errorf("accept of a changed large object: got %v, want ErrChanged", err)
	}
	reader, _, err := h.Outputs.Open(t.Context(), port.Accepted, key, port.Span{})
	if err != nil {
		t.Fatal(err)
	}
	got, want := sha256.New(), sha256.New()
	_, err = io.Copy(got, reader)
	_, wanted := io.Copy(want, io.NewSectionReader(body, 0, body.size()))
	if err := errors.Join(err, wanted, reader.Close()); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Sum(nil), want.Sum(nil)) {
		t.Error("got other bytes in the copy")
	}
	// A span across the boundary of two parts.
	seam, want2 := make([]byte, 64), port.Span{Offset: h.Big - 32, Length: 64}
	if _, err := body.ReadAt(seam, want2.Offset); err != nil {
		t.Fatal(err)
	}
	if text, _ := h.read(t, port.Accepted, key, want2); text != string(seam) {
		t.Error("got other bytes in a span across two parts")
	}
	// A reader may be closed before its end.
	reader, _, err = h.Outputs.Open(t.Context(), port.Accepted, key, port.Span{Offset: 1})
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.ReadFull(reader, make([]byte, 10))
	if err := errors.Join(err, reader.Close()); err != nil {
		t.Fatal(err)
	}
}

func outputsOpen(t *testing.T, h OutputsHarness) {
	const key, whole = "exports/t1/a.txt", "0123456789"
	kept := h.keep(t, key, whole)
	tests := []struct {
		name string
		span port.Span
		want string
	}{
		{"whole object", port.Span{}, whole},
		{"whole object by length", port.Span{Length: 10}, whole},
		{"first byte", port.Span{Length: 1}, "0"},
		{"last byte", port.Span{Offset: 9, Length: 1}, "9"},
		{"middle", port.Span{Offset: 3, Length: 4}, "3456"},
		{"no length reads to the end", port.Span{Offset: 7}, "789"},
		{"length beyond the end", port.Span{Offset: 8, Length: 100}, "89"},
		{"length overflows", port.Span{Offset: 8, Length: 1<<63 - 1}, "89"},
		{"offset at the end", port.Span{Offset: 10, Length: 1}, ""},
		{"offset beyond the end", port.Span{Offset: 1000}, ""},
	}
	for _, test := range tests {
		text, object := h.read(t, port.Accepted, key, test.span)
		if text != test.want {
			t.Errorf("%s: got %q, want %q", test.name, text, test.want)
		}
		if diff := cmp.Diff(kept, object); diff != "" {
			t.Errorf("%s: got another object (-accepted +opened):\n%s", test.name, diff)
		}
	}
	for _, span := range []port.Span{{Offset: -1}, {Length: -1}} {
		if _, _, err := h.Outputs.Open(t.Context(), port.Accepted, key, span); !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("span %+v: got %v, want an invalid request", span, err)
		}
	}
	if _, _, err := h.Outputs.Open(t.Context(), port.Uploads, "exports/t1/none", port.Span{}); !errors.Is(err, port.ErrNotFound) {
		t.Errorf("open of a missing object: got %v, want ErrNotFound", err)
	}
	h.keep(t, "exports/t1/empty", "")
	if text, object := h.read(t, port.Accepted, "exports/t1/empty", port.Span{}); text != "" || object.Size != 0 {
		t.Errorf("empty object: got %q, %+v", text, object)
	}
}

func outputsPut(t *testing.T, h OutputsHarness) {
	const key, kind = "acme/logs/t1/1.log", "text/plain; charset=utf-8"
	for _, bucket := range []port.Bucket{port.Accepted, port.Uploads} {
		for _, content := range []string{"the first", "", strings.Repeat("longer \x00\xff", 1<<16)} {
			if err := h.Outputs.Put(t.Context(), bucket, key, kind, []byte(content)); err != nil {
				t.Fatal(err)
			}
			body, object, err := h.Outputs.Open(t.Context(), bucket, key, port.Span{})
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(body)
			if err != nil || body.Close() != nil || string(text) != content || object.ContentType != kind || object.Size != int64(len(content)) {
				t.Errorf("put of %d bytes: got %d bytes in %+v (%v)", len(content), len(text), object, err)
			}
		}
	}
}

func outputsDelete(t *testing.T, h OutputsHarness) {
	const key = "exports/t1/a.txt"
	h.keep(t, key, "hello")
	for range 2 {
		if err := h.Outputs.Delete(t.Context(), port.Accepted, key); err != nil {
			t.Fatal(err)
		}
		h.missing(t, port.Accepted, key)
	}
	h.head(t, port.Uploads, key) // the other bucket has not changed
}

func outputsDeletePrefix(t *testing.T, h OutputsHarness) {
	for _, key := range []string{"exports/t1/a", "exports/t1/b/c", "exports/t10/a", "exports/t1", "exports/t/a"} {
		h.keep(t, key, "hello")
	}
	h.Begin(t, "exports/t1/unfinished")
	h.Begin(t, "exports/t1/unfinished")
	h.Begin(t, "exports/t10/unfinished")
	if n := h.Unfinished(t, "exports/t1/"); n != 2 {
		t.Fatalf("got %d unfinished uploads, want 2", n)
	}
	for range 2 {
		if err := h.Outputs.DeletePrefix(t.Context(), port.Uploads, "exports/t1/"); err != nil {
			t.Fatal(err)
		}
		h.missing(t, port.Uploads, "exports/t1/a")
		h.missing(t, port.Uploads, "exports/t1/b/c")
	}
	if n := h.Unfinished(t, "exports/t1/"); n != 0 {
		t.Errorf("got %d unfinished uploads, want 0", n)
	}
	if n := h.Unfinished(t, "exports/t10/"); n != 1 {
		t.Errorf("got %d unfinished uploads outside the prefix, want 1", n)
	}
	for _, key := range []string{"exports/t10/a", "exports/t1", "exports/t/a"} {
		h.head(t, port.Uploads, key)
	}
	h.head(t, port.Accepted, "exports/t1/a") // the other bucket has not changed
	for _, prefix := range []string{"", "exports/t10"} {
		if err := h.Outputs.DeletePrefix(t.Context(), port.Uploads, prefix); err == nil {
			t.Errorf("prefix %q: got success, want an error", prefix)
		}
	}
	h.head(t, port.Uploads, "exports/t10/a")
}

func outputsKeys(t *testing.T, h OutputsHarness) {
	for _, name := range []string{
		"a b.txt", "a+b.txt", "a%20b.txt", "größe.txt", "what?.txt", "a#b.txt", "a&b=c.txt", "a:b@c!$'()*,;.txt", "日本.xml",
	} {
		key := "exports/t1/" + name
		if kept := h.keep(t, key, name); kept.Size != int64(len(name)) {
			t.Errorf("%s: got accepted object %+v", name, kept)
		}
		if text, _ := h.read(t, port.Accepted, key, port.Span{}); text != name {
			t.Errorf("%s: got content %q", name, text)
		}
		url, err := h.Outputs.PresignGet(t.Context(), key, "attachment", "text/plain", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if status, text, _ := h.fetch(t, http.MethodGet, url, nil); status != http.StatusOK || text != name {
			t.Errorf("%s: got status %d and %q from the presigned URL", name, status, text)
		}
		if err := h.Outputs.Delete(t.Context(), port.Accepted, key); err != nil {
			t.Fatal(err)
		}
		h.missing(t, port.Accepted, key)
	}
}

func outputsContext(t *testing.T, h OutputsHarness) {
	put := h.put(t, "exports/t1/a.txt", "hello")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, headed := h.Outputs.Head(ctx, port.Uploads, put.Key)
	_, kept := h.Outputs.Accept(ctx, put.Key, put.ETag)
	_, _, opened := h.Outputs.Open(ctx, port.Uploads, put.Key, port.Span{})
	deleted := h.Outputs.Delete(ctx, port.Uploads, put.Key)
	for call, err := range map[string]error{"head": headed, "keep": kept, "open": opened, "delete": deleted} {
		if !fault.Is(err, fault.Unavailable) || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want the context's error", call, err)
		}
	}
	h.missing(t, port.Accepted, put.Key)
	h.head(t, port.Uploads, put.Key)
}

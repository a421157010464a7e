package porttest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// OutputsHarness is a store with nothing on either shelf.
type OutputsHarness struct {
	// Outputs is what is tested.
	Outputs port.Outputs
	// OutputsAt is the same store seen by an adapter whose clock stands.
	OutputsAt func(now time.Time) port.Outputs
	// Put writes to Uploads as a worker does; size bytes of body.
	Put func(t *testing.T, key, contentType string, body io.ReaderAt, size int64)
	// Begin begins an upload to Uploads that is not finished.
	Begin func(t *testing.T, key string)
	// Unfinished counts the uploads that were begun under the prefix.
	Unfinished func(t *testing.T, prefix string) int
	// HTTP fetches presigned URLs.
	HTTP *http.Client
	// Big is a size in bytes above which the adapter works in parts.
	Big int64
}

// Outputs is the conformance suite of port.Outputs. setup
// is called once for each test.
func Outputs(t *testing.T, setup func(t *testing.T) OutputsHarness) {
	t.Helper()
	tests := []struct {
		name string
		run  func(*testing.T, OutputsHarness)
	}{
		{"head tells what was put", outputsHead},
		{"keep copies what was looked at", outputsAccept},
		{"keep refuses what has changed", outputsAcceptChanged},
		{"keep copies big objects", outputsAcceptLarge},
		{"open reads spans", outputsOpen},
		{"put writes an object whole", outputsPut},
		{"a presigned get serves from kept", outputsPresignGet},
		{"a presigned put takes one upload", outputsPresignPut},
		{"presigned URLs live as long as they can", outputsPresignTTL},
		{"delete may be repeated", outputsDelete},
		{"a prefix is deleted and nothing beside it", outputsDeletePrefix},
		{"keys are what they are", outputsKeys},
		{"an ended context ends the call", outputsContext},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, setup(t))
		})
	}
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
		t.Fatalf("cannot keep %s: %v", key, err)
	}
	return kept
}

func (h OutputsHarness) head(t *testing.T, shelf port.Bucket, key string) port.Object {
	t.Helper()
	object, err := h.Outputs.Head(t.Context(), shelf, key)
	if err != nil {
		t.Fatalf("cannot look %s up on %s: %v", key, shelf, err)
	}
	return object
}

func (h OutputsHarness) read(t *testing.T, shelf port.Bucket, key string, span port.Span) (string, port.Object) {
	t.Helper()
	body, object, err := h.Outputs.Open(t.Context(), shelf, key, span)
	if err != nil {
		t.Fatalf("cannot open %s on %s: %v", key, shelf, err)
	}
	text, err := io.ReadAll(body)
	if err := errors.Join(err, body.Close()); err != nil {
		t.Fatalf("cannot read %s on %s: %v", key, shelf, err)
	}
	return string(text), object
}

func (h OutputsHarness) missing(t *testing.T, shelf port.Bucket, key string) {
	t.Helper()
	if _, err := h.Outputs.Head(t.Context(), shelf, key); !errors.Is(err, port.ErrNotFound) {
		t.Errorf("%s on %s: got %v, want not found", key, shelf, err)
	}
}

func outputsHead(t *testing.T, h OutputsHarness) {
	h.missing(t, port.Uploads, "exports/t1/a.txt")
	put := h.put(t, "exports/t1/a.txt", "hello")
	if put.Key != "exports/t1/a.txt" || put.Size != 5 || put.ContentType != "text/plain" || put.ModifiedAt.IsZero() {
		t.Errorf("got %+v", put)
	}
	if !strings.HasPrefix(put.ETag, `"`) || !strings.HasSuffix(put.ETag, `"`) || len(put.ETag) < 3 {
		t.Errorf("the ETag %s has no quotes", put.ETag)
	}
	h.missing(t, port.Accepted, "exports/t1/a.txt")
	h.missing(t, port.Uploads, "exports/t1")
	if again := h.put(t, "exports/t1/a.txt", "hallo"); again.ETag == put.ETag {
		t.Error("other bytes have the same ETag")
	}
	if empty := h.put(t, "exports/t1/empty", ""); empty.Size != 0 {
		t.Errorf("an empty object has %d bytes", empty.Size)
	}
	if _, err := h.Outputs.Head(t.Context(), "attic", "exports/t1/a.txt"); err == nil {
		t.Error("there is no such shelf")
	}
}

func outputsAccept(t *testing.T, h OutputsHarness) {
	const key = "exports/t1/a.txt"
	put := h.put(t, key, "hello")
	for range 2 { // every call may be repeated
		kept, err := h.Outputs.Accept(t.Context(), key, put.ETag)
		if err != nil {
			t.Fatal(err)
		}
		if kept.Key != key || kept.Size != 5 || kept.ContentType != "text/plain" || kept.ETag == "" {
			t.Errorf("kept %+v", kept)
		}
		if diff := cmp.Diff(h.head(t, port.Accepted, key), kept); diff != "" {
			t.Errorf("head tells another thing than keep (-head +keep):\n%s", diff)
		}
	}
	h.put(t, key, "changed by the worker")
	if err := h.Outputs.Delete(t.Context(), port.Uploads, key); err != nil {
		t.Fatal(err)
	}
	if text, _ := h.read(t, port.Accepted, key, port.Span{}); text != "hello" {
		t.Errorf("what was kept is now %q", text)
	}
}

func outputsAcceptChanged(t *testing.T, h OutputsHarness) {
	const key = "exports/t1/a.txt"
	if _, err := h.Outputs.Accept(t.Context(), key, `"0123456789abcdef0123456789abcdef"`); !errors.Is(err, port.ErrNotFound) {
		t.Errorf("keeping nothing: %v", err)
	}
	looked := h.put(t, key, "hello")
	h.put(t, key, "hallo")
	for _, etag := range []string{looked.ETag, ""} {
		if _, err := h.Outputs.Accept(t.Context(), key, etag); !errors.Is(err, port.ErrChanged) {
			t.Errorf("keeping under %q: %v", etag, err)
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
		t.Fatalf("the upload arrived as %+v", put)
	}
	kept, err := h.Outputs.Accept(t.Context(), key, put.ETag)
	if err != nil {
		t.Fatal(err)
	}
	if kept.Size != body.size() || kept.ContentType != "application/x-big" {
		t.Errorf("kept %+v", kept)
	}
	if _, err := h.Outputs.Accept(t.Context(), key, `"0123456789abcdef0123456789abcdef"`); !errors.Is(err, port.ErrChanged) {
		t.Errorf("keeping a changed big object: %v", err)
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
		t.Error("the copy has other bytes")
	}
	// A span over the seam of two parts.
	seam, want2 := make([]byte, 64), port.Span{Offset: h.Big - 32, Length: 64}
	if _, err := body.ReadAt(seam, want2.Offset); err != nil {
		t.Fatal(err)
	}
	if text, _ := h.read(t, port.Accepted, key, want2); text != string(seam) {
		t.Error("a span over two parts has other bytes")
	}
	// Who stops reading early closes.
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
		{"the whole", port.Span{}, whole},
		{"the whole by its length", port.Span{Length: 10}, whole},
		{"the first byte", port.Span{Length: 1}, "0"},
		{"the last byte", port.Span{Offset: 9, Length: 1}, "9"},
		{"the middle", port.Span{Offset: 3, Length: 4}, "3456"},
		{"no length: to the end", port.Span{Offset: 7}, "789"},
		{"beyond the end: cut", port.Span{Offset: 8, Length: 100}, "89"},
		{"further than numbers go", port.Span{Offset: 8, Length: 1<<63 - 1}, "89"},
		{"from the end: empty", port.Span{Offset: 10, Length: 1}, ""},
		{"from behind the end: empty", port.Span{Offset: 1000}, ""},
	}
	for _, test := range tests {
		text, object := h.read(t, port.Accepted, key, test.span)
		if text != test.want {
			t.Errorf("%s: got %q, want %q", test.name, text, test.want)
		}
		if diff := cmp.Diff(kept, object); diff != "" {
			t.Errorf("%s: the object is another (-kept +opened):\n%s", test.name, diff)
		}
	}
	for _, span := range []port.Span{{Offset: -1}, {Length: -1}} {
		if _, _, err := h.Outputs.Open(t.Context(), port.Accepted, key, span); !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("the span %+v: %v", span, err)
		}
	}
	if _, _, err := h.Outputs.Open(t.Context(), port.Uploads, "exports/t1/none", port.Span{}); !errors.Is(err, port.ErrNotFound) {
		t.Errorf("opening nothing: %v", err)
	}
	h.keep(t, "exports/t1/empty", "")
	if text, object := h.read(t, port.Accepted, "exports/t1/empty", port.Span{}); text != "" || object.Size != 0 {
		t.Errorf("an empty object: %q, %+v", text, object)
	}
}

func outputsPut(t *testing.T, h OutputsHarness) {
	const key, kind = "acme/logs/t1/1.log", "text/plain; charset=utf-8"
	for _, shelf := range []port.Bucket{port.Accepted, port.Uploads} {
		for _, content := range []string{"the first", "", strings.Repeat("longer \x00\xff", 1<<16)} {
			if err := h.Outputs.Put(t.Context(), shelf, key, kind, []byte(content)); err != nil {
				t.Fatal(err)
			}
			body, object, err := h.Outputs.Open(t.Context(), shelf, key, port.Span{})
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(body)
			if err != nil || body.Close() != nil || string(text) != content || object.ContentType != kind || object.Size != int64(len(content)) {
				t.Errorf("%d bytes were put, and %d of %+v are there (%v)", len(content), len(text), object, err)
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
	h.head(t, port.Uploads, key) // the other shelf is untouched
}

func outputsDeletePrefix(t *testing.T, h OutputsHarness) {
	for _, key := range []string{"exports/t1/a", "exports/t1/b/c", "exports/t10/a", "exports/t1", "exports/t/a"} {
		h.keep(t, key, "hello")
	}
	h.Begin(t, "exports/t1/unfinished")
	h.Begin(t, "exports/t1/unfinished")
	h.Begin(t, "exports/t10/unfinished")
	if n := h.Unfinished(t, "exports/t1/"); n != 2 {
		t.Fatalf("%d uploads were begun, want 2", n)
	}
	for range 2 {
		if err := h.Outputs.DeletePrefix(t.Context(), port.Uploads, "exports/t1/"); err != nil {
			t.Fatal(err)
		}
		h.missing(t, port.Uploads, "exports/t1/a")
		h.missing(t, port.Uploads, "exports/t1/b/c")
	}
	if n := h.Unfinished(t, "exports/t1/"); n != 0 {
		t.Errorf("%d uploads are left", n)
	}
	if n := h.Unfinished(t, "exports/t10/"); n != 1 {
		t.Errorf("beside the prefix %d uploads are left, want 1", n)
	}
	for _, key := range []string{"exports/t10/a", "exports/t1", "exports/t/a"} {
		h.head(t, port.Uploads, key)
	}
	h.head(t, port.Accepted, "exports/t1/a") // the other shelf
	for _, prefix := range []string{"", "exports/t10"} {
		if err := h.Outputs.DeletePrefix(t.Context(), port.Uploads, prefix); err == nil {
			t.Errorf("the prefix %q was accepted", prefix)
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
			t.Errorf("%s: kept %+v", name, kept)
		}
		if text, _ := h.read(t, port.Accepted, key, port.Span{}); text != name {
			t.Errorf("%s: read %q", name, text)
		}
		url, err := h.Outputs.PresignGet(t.Context(), key, name, "text/plain", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if status, text, _ := h.fetch(t, http.MethodGet, url, nil); status != http.StatusOK || text != name {
			t.Errorf("%s: the presigned URL answered %d %q", name, status, text)
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
			t.Errorf("%s with an ended context: %v", call, err)
		}
	}
	h.missing(t, port.Accepted, put.Key)
	h.head(t, port.Uploads, put.Key)
}

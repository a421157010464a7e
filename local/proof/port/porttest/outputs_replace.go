package porttest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/sortie-dev/sortie/shared/port"
)

const replaced = "acme/logs/t1/1/head"

// replace calls Replace for one key in Accepted.
func (h OutputsHarness) replace(t *testing.T, content, etag string) error {
	t.Helper()
	return h.Outputs.Replace(t.Context(), port.Accepted, replaced, "text/plain", []byte(content), etag)
}

func outputsReplace(t *testing.T, h OutputsHarness) {
	wantContent := func(content string) (etag string) {
		t.Helper()
		text, object := h.read(t, port.Accepted, replaced, port.Span{})
		if text != content || object.ContentType != "text/plain" {
			t.Fatalf("got %q of type %s, want %q of type text/plain", text, object.ContentType, content)
		}
		return object.ETag
	}
	if err := h.replace(t, "first", `"00112233445566778899aabbccddeeff"`); !errors.Is(err, port.ErrChanged) {
		t.Fatalf("missing object: got %v, want ErrChanged", err)
	}
	h.missing(t, port.Accepted, replaced)
	if err := h.replace(t, "first", ""); err != nil {
		t.Fatal(err)
	}
	first := wantContent("first")
	if err := h.replace(t, "second", ""); !errors.Is(err, port.ErrChanged) {
		t.Fatalf("existing object: got %v, want ErrChanged", err)
	}
	wantContent("first")
	if err := h.replace(t, "second", first); err != nil {
		t.Fatal(err)
	}
	if err := h.replace(t, "third", first); !errors.Is(err, port.ErrChanged) {
		t.Fatalf("old ETag: got %v, want ErrChanged", err)
	}
	wantContent("second")
}

func outputsReplaceRace(t *testing.T, h OutputsHarness) {
	for round := range 3 {
		etag := ""
		if round > 0 {
			etag = h.head(t, port.Accepted, replaced).ETag
		}
		var all sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			all.Go(func() { errs[i] = h.replace(t, fmt.Sprintf("round %d writer %d", round, i), etag) })
		}
		all.Wait()
		text, _ := h.read(t, port.Accepted, replaced, port.Span{})
		applied := 0
		for i, err := range errs {
			switch {
			case err == nil && strings.HasSuffix(text, fmt.Sprintf("round %d writer %d", round, i)):
				applied++
			case err == nil:
				t.Errorf("round %d: got success of writer %d and the content %q", round, i, text)
			case !errors.Is(err, port.ErrChanged):
				t.Errorf("round %d: got %v, want ErrChanged", round, err)
			}
		}
		if applied != 1 {
			t.Errorf("round %d: got %d applied replacements, want 1", round, applied)
		}
	}
}

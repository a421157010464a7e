package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

var rewrite = flag.Bool("rewrite", false, "write the generated files")

// TestClientIsFresh checks that the generated files match the OpenAPI document, and so that
// each operation has a method. With -rewrite it writes them.
func TestClientIsFresh(t *testing.T) {
	t.Parallel()
	files, err := generate(contract.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		path := filepath.Join("..", filepath.FromSlash(name))
		if *rewrite {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is out of date (%v): run make generate", name, err)
		}
	}
}

func TestOperationWithoutAMethodIsAnError(t *testing.T) {
	t.Parallel()
	document := bytes.Replace(contract.OpenAPI(), []byte("operationId: getRun\n"), []byte("operationId: getRun2\n"), 1)
	if _, err := generate(document); err == nil {
		t.Error("got no error, want one that names getRun2")
	}
}

func TestGoNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"runId": "RunID", "created_ms": "CreatedMS", "URLs": "URLs", "ttl_ms_remaining": "TTLMSRemaining", "X-Backoff-Ms": "XBackoffMS", "gpuCount": "GPUCount", "runner": "Runner"} {
		if got := goName(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

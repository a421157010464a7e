package run_test

import (
	"testing"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

func TestContentTypeOfWork(t *testing.T) {
	t.Parallel()
	for _, format := range limit.Formats() {
		if got := (run.Work{Kind: "export", Format: format}).ContentType(); got != "application/xml" {
			t.Errorf("export of %s: got %q, want application/xml", format, got)
		}
	}
	if got := (run.Work{Kind: "job"}).ContentType(); got != "application/octet-stream" {
		t.Errorf("job: got %q, want application/octet-stream", got)
	}
}

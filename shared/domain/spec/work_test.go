package spec_test

import (
	"testing"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

func TestContentTypeOfWork(t *testing.T) {
	t.Parallel()
	for _, format := range limit.Formats() {
		if got := (spec.Work{Kind: "export", Format: format}).ContentType(); got != "application/xml" {
			t.Errorf("export of %s: got %q, want application/xml", format, got)
		}
	}
	if got := (spec.Work{Kind: "job"}).ContentType(); got != "application/octet-stream" {
		t.Errorf("job: got %q, want application/octet-stream", got)
	}
}

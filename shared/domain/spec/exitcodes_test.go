package spec_test

import (
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// TestRetryCodesRestrictRetries lists the exit codes whose failures are not retried.
func TestRetryCodesRestrictRetries(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		codes spec.ExitCodes
		final map[int]bool
	}{
		"none":           {spec.ExitCodes{}, map[int]bool{1: false, 75: false, 137: false}},
		"fail":           {spec.ExitCodes{Fail: []int{2}}, map[int]bool{1: false, 2: true}},
		"retry":          {spec.ExitCodes{Retry: []int{75}}, map[int]bool{1: true, 75: false, 137: true}},
		"retry and fail": {spec.ExitCodes{Retry: []int{75}, Fail: []int{2}}, map[int]bool{1: true, 2: true, 75: false}},
	} {
		for code, want := range row.final {
			if got := row.codes.Final(code); got != want {
				t.Errorf("%s: got final %v for code %d, want %v", name, got, code, want)
			}
		}
	}
}

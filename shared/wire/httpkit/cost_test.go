package httpkit_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// TestErrorsRepeatLittleOfTheBody sends values of a megabyte. The error must contain the field
// and only the start of the value.
func TestErrorsRepeatLittleOfTheBody(t *testing.T) {
	t.Parallel()
	digits := strings.Repeat("1", 1<<19)
	for name, body := range map[string]string{
		"number":        `{"pi":` + digits + `}`,
		"fraction":      `{"pi":"a","options":{"maxDepth":0.` + digits + `}}`,
		"unknown field": `{"` + digits + `":1}`,
		"text":          `{"pi":"a","options":"` + digits + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			err := httpkit.DecodeJSON(httptest.NewRecorder(), r, &contract.ExportRequest{})
			if err == nil {
				t.Fatal("got no error, want one")
			}
			text, _ := json.Marshal(httpkit.ProblemOf(err).Body)
			if len(text) > 1000 {
				t.Errorf("got a problem of %d bytes, want at most 1000: %.200s", len(text), text)
			}
		})
	}
}

// TestLargeUnknownFieldIsCheap decodes 4 MiB of numbers in an unknown field. The cost must be a
// few passes over the text, without an allocation per number.
func TestLargeUnknownFieldIsCheap(t *testing.T) { //nolint:paralleltest // AllocsPerRun counts the allocations of the process
	body := `{"attempt":1,"workerId":"w","outcome":"SUCCEEDED","x":[` + strings.Repeat("0,", (4<<20-200)/2) + `0]}`
	allocations := testing.AllocsPerRun(1, func() {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		var report contract.TaskCompleted
		if _, err := httpkit.DecodeReport(httptest.NewRecorder(), r, &report); err != nil || report.Attempt != 1 {
			t.Errorf("got %+v, %v, want attempt 1", report, err)
		}
	})
	if allocations > 500 {
		t.Errorf("got %.0f allocations, want at most 500", allocations)
	}
}

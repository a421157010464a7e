package contract_test

import (
	"encoding/json"
	"testing"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func TestExportMetricsUseOneSpelling(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ metrics, want string }{
		"worker contract": {`{"cpuTimeMs":5,"peakMemoryBytes":7,"entitiesExported":72}`, `{"cpu_time_ms":5,"entities_exported":72,"peak_memory_bytes":7}`},
		"export contract": {`{"total_time_ms":2934, "entities_failed":0}`, `{"total_time_ms":2934, "entities_failed":0}`},
		"other figures":   {`{"imageCount":1,"own":{"cpuTimeMs":[2]}}`, `{"imageCount":1,"own":{"cpuTimeMs":[2]}}`},
		"absent":          {``, ``},
		"not an object":   {`[1]`, `[1]`},
	} {
		if got := contract.ExportMetrics(json.RawMessage(row.metrics)); string(got) != row.want {
			t.Errorf("%s: got %s, want %s", name, got, row.want)
		}
	}
}

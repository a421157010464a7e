package contract

import "encoding/json"

// exportSpelling maps the metrics of the worker contract and of the export worker to their
// names in the export contract (EC-8.4).
var exportSpelling = map[string]string{
	"totalTimeMs": "total_time_ms", "entitiesExported": "entities_exported", "entitiesFailed": "entities_failed",
	"entitiesIncomplete": "entities_incomplete", "peakMemoryMb": "peak_memory_mb", "cpuTimeMs": "cpu_time_ms",
	"peakMemoryBytes": "peak_memory_bytes", "ioReadBytes": "io_read_bytes", "ioWriteBytes": "io_write_bytes",
}

// ExportMetrics returns the metrics of a completion with their names in the export contract.
// Metrics that no contract defines keep their names. It returns text that is not a JSON object
// unchanged.
func ExportMetrics(metrics json.RawMessage) json.RawMessage {
	var figures map[string]json.RawMessage
	if json.Unmarshal(metrics, &figures) != nil {
		return metrics
	}
	renamed := false
	for from, to := range exportSpelling {
		if value, ok := figures[from]; ok {
			delete(figures, from)
			figures[to], renamed = value, true
		}
	}
	if !renamed {
		return metrics
	}
	text, err := json.Marshal(figures)
	if err != nil {
		return metrics
	}
	return text
}

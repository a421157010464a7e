package worker

// Metrics are the figures of an export in the spelling of the export contract
// (EC-8.4), for the callback.
type Metrics struct {
	// TotalTimeMS is the time from the first request to the stored output.
	TotalTimeMS int64 `json:"total_time_ms"`
	// EntitiesExported is the number of records in the document. EntitiesIncomplete is the
	// number of those that lack something. EntitiesFailed is the number of entities that are
	// missing from the document.
	EntitiesExported   int `json:"entities_exported"`
	EntitiesFailed     int `json:"entities_failed"`
	EntitiesIncomplete int `json:"entities_incomplete"`
	// PeakMemoryMB is the largest resident set of the process in MiB, rounded
	// up; 0 if the system does not report it.
	PeakMemoryMB int64 `json:"peak_memory_mb"`
}

// taskMetrics are the same figures in the spelling of the worker contract, for
// completed. The SDK adds peakMemoryBytes.
type taskMetrics struct {
	TotalTimeMS        int64 `json:"totalTimeMs"`
	EntitiesExported   int   `json:"entitiesExported"`
	EntitiesFailed     int   `json:"entitiesFailed"`
	EntitiesIncomplete int   `json:"entitiesIncomplete"`
	PeakMemoryMB       int64 `json:"peakMemoryMb"`
}

package worker

// Metrics are the figures of an export, in the contract's spelling.
type Metrics struct {
	TotalTimeMS int64 `json:"total_time_ms"`
	// EntitiesExported are the records of the document, EntitiesIncomplete
	// those of them that lack something. EntitiesFailed are not in it.
	EntitiesExported   int `json:"entities_exported"`
	EntitiesFailed     int `json:"entities_failed"`
	EntitiesIncomplete int `json:"entities_incomplete"`
	// PeakMemoryMB is the largest resident set of the process, in MiB, rounded
	// up; 0 where the system does not tell.
	PeakMemoryMB int64 `json:"peak_memory_mb"`
}

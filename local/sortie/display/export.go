package display

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// metrics are the metrics that the export worker reports. Other workers may report others, or
// no metrics.
type metrics struct {
	TotalTimeMS        *int64 `json:"total_time_ms"`
	EntitiesExported   *int64 `json:"entities_exported"`
	EntitiesFailed     int64  `json:"entities_failed"`
	EntitiesIncomplete int64  `json:"entities_incomplete"`
	PeakMemoryMB       int64  `json:"peak_memory_mb"`
}

func metricsOf(status contract.Status) metrics {
	var m metrics
	if err := json.Unmarshal(status.Metrics, &m); err != nil {
		return metrics{}
	}
	return m
}

// Export summarizes an export: "72 entities, 1,748,234 bytes in 2.9 s, at
// most 30 MB of memory".
func Export(status contract.Status, size int64) string {
	m := metricsOf(status)
	var what []string
	if m.EntitiesExported != nil {
		what = append(what, Plural(*m.EntitiesExported, "entity", "entities"))
	}
	for _, part := range []struct {
		count int64
		words string
	}{{m.EntitiesIncomplete, "incomplete"}, {m.EntitiesFailed, "failed"}} {
		if part.count > 0 {
			what = append(what, fmt.Sprintf("%s %s", Count(part.count), part.words))
		}
	}
	what = append(what, Plural(size, "byte", "bytes"))
	text := strings.Join(what, ", ")
	if m.TotalTimeMS != nil {
		text += " in " + Duration(time.Duration(*m.TotalTimeMS)*time.Millisecond)
	}
	if m.PeakMemoryMB > 0 {
		text += fmt.Sprintf(", at most %s MB of memory", Count(m.PeakMemoryMB))
	}
	return text
}

// Plural formats a number of things.
func Plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(n) + " " + many
}

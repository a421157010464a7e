package limit_test

import (
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/base/limit"
)

func TestNearestNameIsThatWasMeant(t *testing.T) {
	t.Parallel()
	known := []string{"schedule", "timeZone", "env", "id", "retryConfig", "maxRetries"}
	for name, want := range map[string]string{
		"shedule": "schedule", "scheduel": "schedule", "schedules": "schedule", "time_zone": "timeZone", "TimeZone": "timeZone", "timezon": "timeZone",
		"envs": "env", "en": "env", "ids": "id", "retry-config": "retryConfig", "maxRetry": "", "cron": "", "": "", "x": "", "command": "",
		strings.Repeat("schedule", 1000): "",
	} {
		if got := limit.Nearest(name, known); got != want {
			t.Errorf("%.20q: got %q, want %q", name, got, want)
		}
	}
}

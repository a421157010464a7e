package cost

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// LoadLasts is the duration of a run of the load model, with a heartbeat each
// 30 s.
const LoadLasts = 10 * time.Minute

// functionGB is the default memory of a function.
const functionGB = 0.125

// demand is a row of the load model: what that many concurrent runs use per
// second, or hold, and the default quota that limits it; 0 means no quota.
type demand struct {
	what  string
	of    func(rate float64, used Usage) float64
	quota float64
	// raise says what to do above the quota.
	raise string
}

// perSecond returns the rate at which a kind is used.
func perSecond(kind Kind) func(float64, Usage) float64 {
	return func(rate float64, used Usage) float64 { return rate * used[kind] }
}

// demands returns the rows. The quotas are those of infra/README.md.
func demands() []demand {
	return []demand{
		{"runs started a second", func(rate float64, _ Usage) float64 { return rate }, 300, "StartExecution"},
		{"Fly apps in `flyApps`, at one create a second each", func(rate float64, _ Usage) float64 { return math.Ceil(rate) }, 1, "`flyApps`"},
		{"requests to API Gateway a second", perSecond(APIRequests), 10_000, "API Gateway's requests"},
		{"concurrent Lambda executions", func(rate float64, used Usage) float64 {
			return math.Ceil(rate * used[LambdaGBs] / functionGB)
		}, 1_000, "Lambda's concurrent executions"},
		{"state transitions a second", perSecond(Transitions), 5_000, "Step Functions' transitions"},
		{"write units a second", perSecond(WriteUnits), 4_000, "nothing, but start slowly: the table scales by itself"},
		{"task heartbeats a second", perSecond(TaskHeartbeats), 500, "SendTaskHeartbeat"},
		{"signatures a second", perSecond(Signatures), 1_000, "KMS's signatures"},
		{"GB of logs a day", func(rate float64, used Usage) float64 { return rate * used[LogGB] * 86_400 }, 0, ""},
		{"dollars an hour", func(rate float64, used Usage) float64 { return rate * 3600 * Dollars(used) }, 0, ""},
	}
}

// Load returns the load model as Markdown: the demand of 100, 1,000 and 10,000
// concurrent runs when each that ends is followed by another.
func (m Measured) Load() string {
	plain, ok := m.Row(RowPlain)
	hour, heartbeats := m.Row(RowHeartbeats)
	if !ok || !heartbeats {
		return ""
	}
	used := plain.Usage.Plus(hour.Usage.Times(LoadLasts.Hours()))
	sizes := []float64{100, 1_000, 10_000}
	var text strings.Builder
	fmt.Fprintf(&text, "| runs at once, of %s each | 100 | 1,000 | 10,000 |\n|---|---:|---:|---:|\n", spell(LoadLasts))
	raise := make([][]string, len(sizes))
	for _, n := range demands() {
		fmt.Fprintf(&text, "| %s", n.what)
		for i, runs := range sizes {
			is := n.of(runs/LoadLasts.Seconds(), used)
			fmt.Fprintf(&text, " | %s", figure(is))
			if n.quota > 0 && is > n.quota {
				raise[i] = append(raise[i], n.raise)
			}
		}
		text.WriteString(" |\n")
	}
	text.WriteString("| to raise on an established account")
	for _, each := range raise {
		if len(each) == 0 {
			each = []string{"nothing"}
		}
		fmt.Fprintf(&text, " | %s", strings.Join(each, "; "))
	}
	text.WriteString(" |\n")
	return text.String()
}

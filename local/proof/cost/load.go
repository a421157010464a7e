package cost

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// LoadLasts is the duration of a run in the load model, with a heartbeat each 30 s.
const LoadLasts = 10 * time.Minute

// functionGB is the default memory of a function.
const functionGB = 0.125

// demand is a row of the load model: the usage per second, or the concurrent use, of that many
// runs. quota is the default quota that limits it; 0 means no quota.
type demand struct {
	what  string
	of    func(rate float64, used Usage) float64
	quota float64
	// raise names the quota or setting to raise.
	raise string
}

// perSecond returns a function for the usage of a kind per second.
func perSecond(kind Kind) func(float64, Usage) float64 {
	return func(rate float64, used Usage) float64 { return rate * used[kind] }
}

// demands returns the rows of the load model. The quotas are those in infra/README.md.
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

// Load returns the load model as Markdown: the demand of 100, 1,000 and 10,000 concurrent runs,
// each of which is followed by another one.
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

package cost

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// cellLasts is the duration of a run in the table of cells: at 1,000 runs/s a million live.
const cellLasts = 1000 * time.Second

// tableMost is the default limit of write units a second of an on-demand table that has grown.
const tableMost = 40_000

// Cells returns, as Markdown, how many stacks in accounts of their own a load needs with the
// quotas of a large region: each row is a quota that limits one stack.
func (m Measured) Cells() string {
	plain, ok := m.Row(RowPlain)
	hour, heartbeats := m.Row(RowHeartbeats)
	if !ok || !heartbeats {
		return ""
	}
	used := plain.Usage.Plus(hour.Usage.Times(cellLasts.Hours()))
	rates := []float64{100, 1_000}
	var text strings.Builder
	fmt.Fprintf(&text, "| runs a second, of %.0f s each | quota | 100 | 1,000 | cells for 1,000 |\n|---|---:|---:|---:|---:|\n", cellLasts.Seconds())
	most := 0.0
	for _, n := range demands() {
		quota := n.quota
		switch n.raise {
		case "", "`flyApps`":
			continue // money, and a number of apps
		}
		if strings.HasPrefix(n.what, "write units") {
			quota = tableMost
		}
		cells := math.Ceil(n.of(rates[1], used) / quota)
		most = max(most, cells)
		fmt.Fprintf(&text, "| %s | %s | %s | %s | %.0f |\n", n.what, figure(quota), figure(n.of(rates[0], used)), figure(n.of(rates[1], used)), cells)
	}
	fmt.Fprintf(&text, "| cells, the largest of the column | | | | %.0f |\n", most)
	return text.String()
}

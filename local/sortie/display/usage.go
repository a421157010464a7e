package display

import (
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Usage returns a table of a report. The last line has the total.
func Usage(u contract.Usage) *Table {
	var by []string
	if u.By != "" {
		by = strings.Split(u.By, ",")
	}
	var head []string
	for _, d := range by {
		head = append(head, strings.ToUpper(d))
	}
	if head == nil {
		head = []string{""}
	}
	t := NewTable(append(head, "TASKS", "INPUT", "CACHED", "OUTPUT", "TIME", "COST")...)
	line := func(s contract.UsageSum, names ...string) {
		cells := make([]string, len(head), len(head)+6)
		copy(cells, names)
		for _, n := range []int64{s.Tasks, s.InputTokens, s.CachedTokens, s.OutputTokens} {
			cells = append(cells, strconv.FormatInt(n, 10))
		}
		t.Row(append(cells, milliseconds(s.TimeMS), "$"+strconv.FormatFloat(float64(s.CostNano)/1e9, 'f', -1, 64))...)
	}
	for _, r := range u.Rows {
		if by == nil {
			break
		}
		session := "none"
		if r.Session != nil && *r.Session != "" {
			session = *r.Session
		}
		var names []string
		for _, d := range by {
			names = append(names, map[string]string{"day": r.Day, "model": r.Model, "key": r.Key, "session": session}[d])
		}
		line(r.UsageSum, names...)
	}
	line(u.Total, "total")
	return t
}

package cost

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Report returns the cost tables as Markdown.
func (m Measured) Report() string {
	var text strings.Builder
	fmt.Fprintf(&text, "Counted on %s with %s; list prices of us-east-1 and of R2 as of %s.\n\n", m.On, m.With, PricesOf)
	text.WriteString("| goal | is | at most | |\n|---|---:|---:|---|\n")
	for _, g := range m.Goals() {
		word := "kept"
		if !g.Met() {
			word = "**missed**"
		}
		fmt.Fprintf(&text, "| %s | %s | %s | %s |\n", g.Claim, figure(g.Is), figure(g.AtMost), word)
	}
	m.compareCases(&text)
	m.idle(&text)
	text.WriteString("\nJobs; what is not counted here is that of an export:\n\n" + m.Jobs())
	text.WriteString("\nEvents; an export has about ten:\n\n" + eventTable() + m.pageList())
	text.WriteString("\nAn inference task of 500 tokens in 20 s with one reader, part by part. Its requests to the table are counted\n" +
		"(`functions/dispatch: TestTaskCosts`); the time of its functions and the size of its logs are assumed:\n\n" + taskTable())
	text.WriteString("\nParts that a stage may do without, by their setting:\n\n" + m.Options())
	text.WriteString("\nAssumed, not counted:\n\n")
	for _, a := range Assumptions() {
		fmt.Fprintf(&text, "- %s: %s.\n", a.What, a.Why)
	}
	return text.String()
}

// cases are the rows about a run, with their column heads.
var cases = []struct{ row, head string }{
	{RowPlain, "export"},
	{RowLost, "worker lost"},
	{RowLimit, "time limit"},
	{RowCancelled, "cancelled"},
	{RowRetried, "tried again"},
	{RowHeartbeats, "heartbeats"},
}

// compareCases writes a table with the units of each case and its cost. Items are ordered by
// the largest cost in any case.
func (m Measured) compareCases(text *strings.Builder) {
	largest := Usage{}
	head, line := "| units | $ a million |", "|---|---:|"
	for _, c := range cases {
		row, _ := m.Row(c.row)
		for kind, units := range row.Usage {
			largest[kind] = max(largest[kind], units)
		}
		head, line = head+" "+c.head+" |", line+"---:|"
	}
	text.WriteString("\nCases: an export; one whose first worker is lost; a run into its time limit; one that is cancelled while its worker is active;\n" +
		"an export that a client tries again, from there; an hour of heartbeats at 30 s.\n\n" + head + "\n" + line + "\n")
	for _, item := range Bill(largest) {
		fmt.Fprintf(text, "| %s | %s |", item.Kind, strconv.FormatFloat(math.Round(item.Price*1e9)/1e3, 'f', -1, 64))
		for _, c := range cases {
			row, _ := m.Row(c.row)
			fmt.Fprintf(text, " %s |", figure(row.Usage[item.Kind]))
		}
		text.WriteString("\n")
	}
	text.WriteString("| $ for a million cases | |")
	for _, c := range cases {
		row, _ := m.Row(c.row)
		fmt.Fprintf(text, " %.2f |", Dollars(row.Usage)*1e6)
	}
	text.WriteString("\n")
}

// idle writes the bill of a month without a run.
func (m Measured) idle(text *strings.Builder) {
	row, ok := m.Row(RowIdle)
	if !ok {
		return
	}
	fmt.Fprintf(text, "\nA month without a run costs $%.2f:\n\n", Dollars(row.Usage))
	rest := 0.0
	for _, item := range Bill(row.Usage) {
		if item.Dollars() < 0.05 {
			rest += item.Dollars()
			continue
		}
		fmt.Fprintf(text, "- $%.2f: %s, %s\n", item.Dollars(), item.Kind, figure(item.Units))
	}
	fmt.Fprintf(text, "- $%.2f: all others\n", rest)
}

func spell(d time.Duration) string {
	if d < time.Hour {
		return strconv.Itoa(int(d.Minutes())) + " min"
	}
	return strconv.Itoa(int(d.Hours())) + " h"
}

// figure formats a number with its significant digits.
func figure(n float64) string {
	switch {
	case n == float64(int64(n)):
		return strconv.FormatInt(int64(n), 10)
	case n >= 100:
		return strconv.FormatFloat(n, 'f', 0, 64)
	case n >= 1:
		return strconv.FormatFloat(n, 'f', 2, 64)
	}
	return strconv.FormatFloat(n, 'g', 2, 64)
}

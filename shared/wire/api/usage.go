package api

import (
	"bytes"
	"encoding/csv"
	"slices"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/shared/app/budgets"
	"github.com/sortie-dev/sortie/shared/domain/usage"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Usage returns the response for usage.
func Usage(r budgets.UsageReport) contract.Usage {
	doc := contract.Usage{
		From: r.From, To: r.To, Rows: []contract.UsageRow{}, Total: usageSum(r.Total), NextCursor: r.Next,
	}
	var by []string
	for _, d := range r.By {
		by = append(by, string(d))
	}
	doc.By = strings.Join(by, ",")
	for _, e := range r.Rows {
		row := contract.UsageRow{Day: e.Day, Model: e.Model, Key: e.Key, UsageSum: usageSum(e.Sum)}
		if slices.Contains(r.By, usage.BySession) {
			row.Session = &e.Session
		}
		doc.Rows = append(doc.Rows, row)
	}
	return doc
}

func usageSum(s usage.Sum) contract.UsageSum {
	return contract.UsageSum{
		Tasks: s.Tasks, InputTokens: s.Input, CachedTokens: s.Cached, OutputTokens: s.Output, TimeMS: s.TimeMS, CostNano: s.CostNano,
	}
}

// UsageCSV returns the rows of usage as CSV (RFC 4180) with a header. It puts an apostrophe before
// a name that a spreadsheet would calculate.
func UsageCSV(r budgets.UsageReport) ([]byte, error) {
	var text bytes.Buffer
	w := csv.NewWriter(&text)
	w.UseCRLF = true
	var header []string
	for _, d := range usage.Dimensions() {
		if slices.Contains(r.By, d) {
			header = append(header, string(d))
		}
	}
	lines := [][]string{append(header, "tasks", "input_tokens", "cached_tokens", "output_tokens", "time_ms", "cost_nanodollars")}
	for _, e := range r.Rows {
		var line []string
		for i, name := range []string{e.Day, e.Model, e.Key, e.Session} {
			if !slices.Contains(r.By, usage.Dimensions()[i]) {
				continue
			}
			if strings.ContainsAny(name[:min(len(name), 1)], "=+-@\t\r") {
				name = "'" + name
			}
			line = append(line, name)
		}
		for _, n := range e.Values() {
			line = append(line, strconv.FormatInt(n, 10))
		}
		lines = append(lines, line)
	}
	err := w.WriteAll(lines)
	return text.Bytes(), err
}

package growth

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// The files of the results: figures, and the document that is made from them.
const (
	figures  = "growth/measured.json"
	document = "GROWTH.md"
)

// Measured are the results of all parts.
type Measured struct {
	Parts []*Result
}

// parts are the axes of both stores in the order of the document.
func parts() (names []string) {
	for _, a := range Axes(false) {
		names = append(names, a.Name)
	}
	for _, a := range TableAxes() {
		names = append(names, a.Name)
	}
	return names
}

// readMeasured reads the figures in the folder of the benchmarks.
func readMeasured(folder string) (m Measured, err error) {
	text, err := os.ReadFile(filepath.Join(folder, figures)) //nolint:gosec // a file of this repository
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(text, &m)
}

// Save replaces a part of the figures, and writes the document.
func Save(folder string, r *Result) error {
	m, err := readMeasured(folder)
	if err != nil {
		return err
	}
	var all []*Result
	for _, name := range parts() {
		for _, each := range append([]*Result{r}, m.Parts...) {
			if each.Axis == name {
				all = append(all, each)
				break
			}
		}
	}
	m.Parts = all
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, figures), append(text, '\n'), 0o644); err != nil { //nolint:gosec // a public document
		return err
	}
	return os.WriteFile(filepath.Join(folder, document), []byte(m.Document()), 0o644) //nolint:gosec // as above
}

const introduction = `# Growth

For people who change Sortie. This document is written by ` + "`go run ./local/proof/bench -only growth`" + `; parts by name are
` + "`growth-queued`, `growth-jobs`, `growth-ended`, `growth-tenants`, `growth-table-queued` and `growth-table-ended`" + `.

A part fills a store to each size in turn, and counts what each operation costs: SQLite's instructions (*steps*), lookups of
*pages*, and objects that Go allocates, or requests and units of DynamoDB. Counts do not depend on the load of the machine;
times do and are only for orientation. The *slope* is the exponent b of the fit n^b over all sizes: 0 does not grow, 1 is
proportional. An operation of a client must stay below 0.1, its pages below 0.3, because trees become deeper. One that
handles the whole store (*) must stay below 1.15, which n log n does. An operation with a bound, such as the 1,000 queued runs
that an explanation counts and the 1,024 records in memory, has its limit only above that size.

` + "`TestNothingGrows`" + ` checks the slopes of all counts at small sizes in ` + "`make test`" + `. Ended runs are copies of the rows of one run that
the program has written; ` + "`TestCopiesEqualWhatTheProgramWrites`" + ` compares them.
`

// Document returns the text of GROWTH.md.
func (m Measured) Document() string {
	var b strings.Builder
	b.WriteString(introduction)
	for _, r := range m.Parts {
		fmt.Fprintf(&b, "\n## %s%s\n\n", strings.ToUpper(r.Axis[:1]), r.Axis[1:])
		fmt.Fprintf(&b, "Sizes: %s.", joined(len(r.Sizes), func(i int) string { return grouped(float64(r.Sizes[i])) }))
		if len(r.Bytes) > 1 {
			last := len(r.Bytes) - 1
			fmt.Fprintf(&b, " File in MiB: %s, %.0f bytes for each more.", joined(len(r.Bytes), func(i int) string { return grouped(float64(r.Bytes[i]) / (1 << 20)) }),
				float64(r.Bytes[last]-r.Bytes[0])/float64(r.Sizes[last]-r.Sizes[0]))
		}
		b.WriteString("\n\n")
		b.WriteString(r.table())
		for _, line := range r.Excess() {
			fmt.Fprintf(&b, "\n- above its limit: %s\n", line)
		}
	}
	return b.String()
}

// columns are the measures of the tables: those of SQLite or of DynamoDB.
func (r *Result) columns() []Measure {
	if r.Table {
		return []Measure{Requests, ReadUnits, WriteUnits}
	}
	return []Measure{Steps, Pages, Objects}
}

func (r *Result) table() string {
	var b strings.Builder
	b.WriteString("| operation |")
	line := "\n|---|"
	for _, m := range r.columns() {
		fmt.Fprintf(&b, " %s | slope |", m)
		line += "---|---:|"
	}
	b.WriteString(" ms | highest slope of a count |" + line + "---|---:|\n")
	for _, row := range r.Rows {
		name := row.Operation
		if row.Whole {
			name += " *"
		}
		fmt.Fprintf(&b, "| %s |", name)
		for _, m := range r.columns() {
			fmt.Fprintf(&b, " %s | %.2f |", row.values(m), row.Slope(m, r.Sizes))
		}
		highest := math.Inf(-1)
		for _, m := range Measures() {
			highest = max(highest, row.Slope(m, r.Sizes))
		}
		fmt.Fprintf(&b, " %s | %.2f |\n", row.values(Took), highest)
	}
	for _, row := range r.Rows {
		if values := row.values(Live); row.Each[0][Live] > 0 {
			fmt.Fprintf(&b, "\nMemory in use after the start, in KiB: %s (slope %.2f).\n", values, row.Slope(Live, r.Sizes))
		}
	}
	return b.String()
}

// values returns a measure at each size.
func (r Row) values(m Measure) string {
	return joined(len(r.Each), func(i int) string {
		if v := r.Each[i][m]; m == Took && v < 100 {
			return fmt.Sprintf("%.1f", v)
		}
		return grouped(r.Each[i][m])
	})
}

func joined(n int, text func(i int) string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = text(i)
	}
	return strings.Join(all, "; ")
}

// grouped returns a rounded number with commas between its thousands.
func grouped(v float64) string {
	text := fmt.Sprintf("%.0f", v)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

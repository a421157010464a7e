package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"
)

// table is the printed table, one figure per row.
type table struct{ rows [][3]string }

// add adds a row.
func (t *table) add(what, figure, format string, args ...any) {
	t.rows = append(t.rows, [3]string{what, figure, fmt.Sprintf(format, args...)})
}

func (t *table) print(w io.Writer) {
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	what := ""
	for _, row := range t.rows {
		if row[0] == what {
			row[0] = ""
		} else {
			what = row[0]
		}
		fmt.Fprintf(columns, "%s\t%s\t%s\n", row[0], row[1], row[2])
	}
	_ = columns.Flush()
}

// encode prints the table as a JSON document.
func (t *table) encode(w io.Writer) error {
	type row struct {
		What   string `json:"what"`
		Figure string `json:"figure"`
		Value  string `json:"value"`
	}
	document := struct {
		Cores int    `json:"cores"`
		OS    string `json:"os"`
		Arch  string `json:"arch"`
		Go    string `json:"go"`
		Rows  []row  `json:"rows"`
	}{runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), []row{}}
	for _, r := range t.rows {
		document.Rows = append(document.Rows, row{r[0], r[1], r[2]})
	}
	printed := json.NewEncoder(w)
	printed.SetIndent("", "  ")
	return printed.Encode(document)
}

// percentile returns the p-quantile of the list, with p from 0 to 1; 0 for an empty list.
func percentile(list []time.Duration, p float64) time.Duration {
	list = slices.Clone(list)
	slices.Sort(list)
	if len(list) == 0 {
		return 0
	}
	return list[min(int(float64(len(list))*p), len(list)-1)]
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func mebi(bytes int64) float64 { return float64(bytes) / (1 << 20) }

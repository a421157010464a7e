package counts_test

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
)

// count names a counted quantity.
type count string

const (
	commits          count = "commits"
	fsyncs           count = "fsyncs"
	writeRequests    count = "requests that write"
	readRequests     count = "requests that read"
	rows             count = "rows written"
	items            count = "items written"
	writeUnits       count = "write units"
	readUnits        count = "read units"
	bytesWritten     count = "KB written"
	bytesKept        count = "KB kept after the relay"
	encoded          count = "records encoded"
	decoded          count = "records decoded"
	signatures       count = "signatures"
	httpCalls        count = "HTTP calls of clients and workers"
	stateCalls       count = "calls of Step Functions"
	objectCalls      count = "calls of the object store"
	platformCalls    count = "calls of the platform"
	machinesStarted  count = "machines started"
	objectsAllocated count = "objects allocated"
	bytesAllocated   count = "KB allocated"
)

// row is a row of a table. A new figure counts as unchanged if it differs from the documented
// one by at most the fraction part, or by at most least.
type row struct {
	count
	unit        float64
	part, least float64
	digits      int
}

// whole returns a row whose number is the same in each run of the test.
func whole(c count) row { return row{count: c, unit: 1} }

// few returns a row whose number depends on goroutine scheduling in an inference task.
func few(c count) row { return row{count: c, unit: 1, part: 0.05, least: 2} }

// packed returns a row in kilobytes. They differ slightly between runs because of random
// tokens.
func packed(c count) row { return row{count: c, unit: 1 << 10, part: 0.05, digits: 1} }

// allocated returns a row that differs slightly between CPUs and patch releases of Go.
func allocated(c count, unit float64) row { return row{count: c, unit: unit, part: 0.1} }

// tables returns the rows for each home.
func tables() map[string][]row {
	return map[string][]row{
		onSQLiteName: {
			whole(commits), whole(fsyncs), whole(rows), packed(bytesWritten), packed(bytesKept), whole(decoded), whole(encoded), whole(signatures),
			whole(httpCalls), whole(objectCalls), whole(platformCalls), whole(machinesStarted), allocated(objectsAllocated, 1), allocated(bytesAllocated, 1<<10),
		},
		onDynamoDBName: {
			few(writeRequests), few(items), few(writeUnits), few(readRequests), few(readUnits), packed(bytesKept), few(decoded), few(encoded), whole(signatures),
			whole(stateCalls), whole(httpCalls), whole(objectCalls), whole(platformCalls), whole(machinesStarted),
		},
	}
}

// of returns the text of a figure. It returns the former text if the figure is close enough.
func (r row) of(c counts, former string) string {
	is, ok := c[r.count]
	if is /= r.unit; !ok && former != "" {
		return former // this figure could not be counted
	}
	if was, err := strconv.ParseFloat(former, 64); err == nil && math.Abs(is-was) <= max(r.part*was, r.least) {
		return former
	}
	return strconv.FormatFloat(is, 'f', r.digits, 64)
}

// tableOf returns the table of a home. former is the document with the former table.
func tableOf(home string, kinds []kind, measured map[string]counts, former string) string {
	var b strings.Builder
	head, line := "| one run on "+home+" |", "|---|"
	for _, k := range kinds {
		head, line = head+" "+k.name+" |", line+"---:|"
	}
	fmt.Fprintf(&b, "%s\n%s\n", head, line)
	_, former, _ = strings.Cut(former, head)
	for _, r := range tables()[home] {
		_, cells, _ := strings.Cut(former, "| "+string(r.count)+" |")
		cells, _, _ = strings.Cut(cells, "\n")
		was := strings.Split(cells, "|")
		fmt.Fprintf(&b, "| %s |", r.count)
		for i, k := range kinds {
			text := ""
			if i < len(was) {
				text = strings.TrimSpace(was[i])
			}
			fmt.Fprintf(&b, " %s |", r.of(measured[k.name], text))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// readme is the file with the tables, which are between two marks.
const (
	readme = "../README.md"
	begin  = "<!-- generated: counts -->\n"
	end    = "<!-- end -->"
)

// refresh compares the tables with the document, or writes them to it.
func refresh(made func(former string) string, rewrite bool) error {
	text, err := os.ReadFile(readme)
	if err != nil {
		return err
	}
	head, rest, found := strings.Cut(string(text), begin)
	former, tail, closed := strings.Cut(rest, end)
	if !found || !closed {
		return fmt.Errorf("%s: got no part %q", readme, begin)
	}
	part := made(former)
	switch {
	case part == former:
		return nil
	case !rewrite:
		return fmt.Errorf("%s: the counts are old; write them with: make generate\n%s", readme, changes(former, part))
	}
	return os.WriteFile(readme, []byte(head+begin+part+end+tail), 0o644) //nolint:gosec // a public document
}

// changes returns the changed lines.
func changes(former, now string) string {
	var b strings.Builder
	was := strings.Split(former, "\n")
	for i, line := range strings.Split(now, "\n") {
		if i >= len(was) || was[i] != line {
			fmt.Fprintf(&b, "got %s\n", line)
			if i < len(was) {
				fmt.Fprintf(&b, "was %s\n", was[i])
			}
		}
	}
	return b.String()
}

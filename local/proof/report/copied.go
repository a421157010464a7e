package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/local/proof/report/figure"
)

// measureCounts reads the table of counts, after its test has compared it with this code.
func measureCounts(ctx context.Context, p *figure.Part) error {
	if _, _, err := tests(ctx, "./local/proof/bench/counts"); err != nil {
		return err
	}
	tables, err := generated("local/proof/bench/README.md", "counts")
	if err != nil {
		return err
	}
	for _, table := range tables {
		home := "on SQLite"
		if strings.Contains(table[0][0], "DynamoDB") {
			home = "on DynamoDB"
		}
		for _, row := range table[1:] {
			value, err := strconv.ParseFloat(row[1], 64)
			if err != nil {
				return fmt.Errorf("the count %q of %s: %w", row[1], row[0], err)
			}
			f := figure.Figure{Name: row[0] + " of an export " + home, Value: value, Better: figure.Less}
			if strings.Contains(row[0], "allocated") {
				f.Noise = 0.1
			}
			p.Add(f)
		}
	}
	p.Note("The figures of other kinds of runs are in [the table of counts](../bench/README.md#counts).")
	return nil
}

// measureCost reads the table of costs, after its test has compared it with the measurement.
func measureCost(ctx context.Context, p *figure.Part) error {
	if _, _, err := tests(ctx, "./local/proof/cost", "-run", "Fresh"); err != nil {
		return err
	}
	tables, err := generated("local/proof/cost/README.md", "cost")
	if err != nil {
		return err
	}
	for _, row := range tables[0][1:] {
		value, err := strconv.ParseFloat(row[1], 64)
		if err != nil {
			return fmt.Errorf("the cost %q of %s: %w", row[1], row[0], err)
		}
		p.Add(figure.Figure{Name: row[0], Value: value, Better: figure.Less, Goal: "at most " + row[2], Missed: row[3] != "kept"})
	}
	p.Note("What each dollar buys, and all other kinds of runs, are in [the tables of costs](../cost/README.md).")
	return nil
}

// generated returns the tables of a generated part of a document: rows of cells, the heading
// first.
func generated(file, marker string) ([][][]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read a table: %w", err)
	}
	_, rest, found := strings.Cut(string(text), "<!-- generated: "+marker+" -->")
	section, _, ended := strings.Cut(rest, "<!-- end -->")
	if !found || !ended {
		return nil, fmt.Errorf("%s has no generated part %s", file, marker)
	}
	var tables [][][]string
	inside := false
	for line := range strings.Lines(section) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			inside = false
			continue
		}
		if strings.HasPrefix(line, "|---") {
			continue
		}
		var cells []string
		for cell := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		if !inside {
			tables, inside = append(tables, nil), true
		}
		tables[len(tables)-1] = append(tables[len(tables)-1], cells)
	}
	if len(tables) == 0 {
		return nil, fmt.Errorf("the part %s of %s has no table", marker, file)
	}
	return tables, nil
}

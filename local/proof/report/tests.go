package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/sortie-dev/sortie/local/proof/report/figure"
)

// contracts are the files of the five contracts.
var contracts = []struct{ file, name string }{
	{"export.md", "export (EC)"},
	{"worker.md", "worker (WC)"},
	{"events.md", "events (EE)"},
	{"control-plane.md", "data and control plane (DP)"},
	{"lifecycle.md", "life of a run (RL)"},
}

var requirementRow = regexp.MustCompile(`(?m)^\| (?:EC|WC|EE|DP|RL)-[\d.]+ \|.*\| ([^|]*) \|$`)

// measureRequirements counts the requirements of the contracts, those without a test, and runs
// the test that each named test exists.
func measureRequirements(ctx context.Context, p *figure.Part) error {
	without := 0
	for _, c := range contracts {
		text, err := os.ReadFile(filepath.Join("shared/wire/contract", c.file))
		if err != nil {
			return fmt.Errorf("cannot read a contract: %w", err)
		}
		rows := requirementRow.FindAllStringSubmatch(string(text), -1)
		named := 0
		for _, row := range rows {
			switch cell := strings.TrimSpace(row[1]); {
			case cell == "*not yet*" || cell == "*no test*":
				without++
			case strings.Contains(cell, "`"):
				named++
			}
		}
		p.Count("requirements of "+c.name, len(rows), figure.Neither)
		p.Count("of these, named with a test", named, figure.Neither)
		p.Figures[len(p.Figures)-1].Name = "with tests, of " + c.name
	}
	p.Zero("not implemented or without a test", without)
	_, _, err := tests(ctx, "./shared/archtest")
	p.Note("The others are informative: they describe a reference implementation. `go test ./shared/archtest` passes: each named test exists.")
	return err
}

var refusals = regexp.MustCompile(`(\d+) requests that must be refused`)

// measureAttacks counts the hostile requests that the tables of the API make, and runs them.
func measureAttacks(ctx context.Context, p *figure.Part) error {
	passed, text, err := tests(ctx, "./local/proof/api/apicheck")
	if err != nil {
		return err
	}
	operations := 0
	for _, name := range passed {
		if strings.HasPrefix(name, "TestAttackMatrix/") {
			operations++
		}
	}
	p.Count("operations of the API under attack", operations, figure.More)
	requests, err := numbers(refusals, text)
	if err != nil {
		return err
	}
	p.Count("requests with credentials that must be refused", requests[0], figure.More)
	doors, err := output(ctx, nil, "git", "grep", "-hoE", `^func Test\w*(Attack|Hostile|Refus|Escap|Forged|Foreign|Leak|Secret|Stranger)\w*`, "--", "*_test.go")
	if err != nil {
		return err
	}
	p.Count("tests of refusals, leaks and hostile input, by name", strings.Count(doors, "\n"), figure.More)
	p.Zero("hostile requests that succeeded or changed something", 0)
	return nil
}

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/local/proof/report/figure"
)

// measureFlaky runs all tests ROUNDS times, without the cache, and counts failures.
func measureFlaky(ctx context.Context, p *figure.Part) error {
	rounds := sized("ROUNDS", 20)
	p.Command += " ROUNDS=" + strconv.Itoa(rounds)
	failures, ran, green := map[string]int{}, 0, 0
	for range rounds {
		failed, n, err := playRound(ctx)
		if err != nil {
			return err
		}
		ran += n
		if len(failed) == 0 {
			green++
		}
		for _, name := range failed {
			failures[name]++
		}
	}
	total := 0
	for _, name := range slices.Sorted(maps.Keys(failures)) {
		total += failures[name]
		p.Note("Failed %d of %d times: %s.", failures[name], rounds, name)
	}
	p.Count("rounds of all tests", rounds, figure.Neither)
	p.Add(figure.Figure{Name: "rounds without a failure", Value: float64(green), Better: figure.More, Goal: "all", Missed: green < rounds})
	p.Count("executions of tests, with subtests", ran, figure.Neither)
	p.Add(figure.Figure{Name: "failures in a million executions", Value: 1e6 * float64(total) / float64(max(1, ran)), Better: figure.Less, Noise: 0.5})
	return nil
}

// playRound runs all tests once. It returns the failed tests without failed subtests, and the
// number of executions.
func playRound(ctx context.Context) ([]string, int, error) {
	command := exec.CommandContext(ctx, "go", "test", "-json", "-count=1", "-p", "4", "-timeout", "30m", "./...")
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, 0, fmt.Errorf("cannot read the tests: %w", err)
	}
	if err := command.Start(); err != nil {
		return nil, 0, fmt.Errorf("cannot run the tests: %w", err)
	}
	var failed []string
	ran := 0
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var event struct{ Action, Package, Test string }
		if json.Unmarshal(lines.Bytes(), &event) != nil || event.Test == "" && event.Action != "fail" {
			continue
		}
		switch event.Action {
		case "pass":
			ran++
		case "fail":
			ran++
			name := strings.TrimSpace(event.Package + " " + event.Test)
			// A test fails after its subtests, a package after its tests.
			if !slices.ContainsFunc(failed, func(f string) bool { return strings.HasPrefix(f, name) }) {
				failed = append(failed, name)
			}
		}
	}
	err = command.Wait()
	if exit := new(exec.ExitError); err != nil && (!errors.As(err, &exit) || len(failed) == 0) {
		return nil, 0, fmt.Errorf("the tests: %w", err)
	}
	return failed, ran, lines.Err()
}

var (
	fuzzTarget = regexp.MustCompile(`(?m)^(\S+_test\.go) (Fuzz\w+)$`)
	fuzzState  = regexp.MustCompile(`elapsed: \S+, execs: (\d+) .*new interesting: \d+ \(total: (\d+)\)`)
	covered    = regexp.MustCompile(`coverage: ([\d.]+)% of statements`)
)

// measureFuzz fuzzes every parser for FUZZTIME, and measures the coverage of their packages by
// their tests and the kept inputs.
func measureFuzz(ctx context.Context, p *figure.Part) error {
	each := strconv.Itoa(sized("FUZZSECONDS", 20))
	p.Command += " FUZZSECONDS=" + each
	text, err := output(ctx, nil, "make", "--no-print-directory", "fuzz", "FUZZTIME="+each+"s")
	if err != nil {
		return err
	}
	found := fuzzTarget.FindAllStringSubmatchIndex(text, -1)
	execs := 0
	packages := map[string]bool{}
	for i, at := range found {
		end := len(text)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		file := text[at[2]:at[3]]
		packages["./"+file[:strings.LastIndexByte(file, '/')]] = true
		states := fuzzState.FindAllStringSubmatch(text[at[0]:end], -1)
		if len(states) == 0 {
			return fmt.Errorf("%s of %s reports no executions", text[at[4]:at[5]], file)
		}
		n, err := strconv.Atoi(states[len(states)-1][1])
		if err != nil {
			return fmt.Errorf("executions of %s: %w", text[at[4]:at[5]], err)
		}
		execs += n
	}
	p.Count("fuzzed parsers", len(found), figure.More)
	p.Add(figure.Figure{Name: "seconds of each", Value: float64(sized("FUZZSECONDS", 20)), Unit: "s"})
	p.Add(figure.Figure{Name: "executions", Value: float64(execs), Better: figure.More, Noise: 0.5})
	p.Zero("inputs that crashed or broke a property", 0)
	return addCoverage(ctx, p, slices.Sorted(maps.Keys(packages)))
}

// addCoverage adds the share of statements that the tests of the packages run.
func addCoverage(ctx context.Context, p *figure.Part, packages []string) error {
	text, err := output(ctx, nil, "go", append([]string{"test", "-count=1", "-cover"}, packages...)...)
	if err != nil {
		return err
	}
	sum, least, weakest := 0.0, 100.0, ""
	shares := covered.FindAllStringSubmatch(text, -1)
	for i, match := range shares {
		share, err := strconv.ParseFloat(match[1], 64)
		if err != nil {
			return fmt.Errorf("the coverage %q: %w", match[1], err)
		}
		sum += share
		if share < least && i < len(packages) {
			least, weakest = share, packages[i]
		}
	}
	p.Count("packages of these parsers", len(packages), figure.Neither)
	p.Add(figure.Figure{Name: "statements that their own tests run, mean", Value: sum / float64(max(1, len(shares))), Unit: "%", Better: figure.More, Noise: 0.01})
	p.Add(figure.Figure{Name: "the least of a package", Value: least, Unit: "%", Better: figure.More, Noise: 0.02})
	p.Note("The least is that of `%s`.", strings.TrimPrefix(weakest, "./"))
	return nil
}

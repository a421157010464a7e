package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/local/proof/report/figure"
)

// benched are the measurements of the speed part, each a few seconds.
const benched = "runs,reads,cancels,heartbeats,feed,relay,inference,starts"

var quantities = regexp.MustCompile(`\d+(?:\.\d+)?`)

// measureSpeed runs measurements of the benchmarks. Times of machines with neighbours differ by
// a fifth; worse is what differs more.
func measureSpeed(ctx context.Context, p *figure.Part) error {
	if err := addDisk(p); err != nil {
		return err
	}
	rows, err := bench(ctx, benched)
	if err != nil {
		return err
	}
	for _, row := range rows {
		addQuantities(p, row, 0.2)
	}
	return nil
}

// measureInference runs the benchmark that puts Sortie, Go's proxy, the router of vLLM and
// LiteLLM before the same engine.
func measureInference(ctx context.Context, p *figure.Part) error {
	return benchPart(ctx, p, "proxies", 0.25)
}

// measureLoad runs the loads on the deployed system in virtual time, so the figures are exact
// but for the order of goroutines.
func measureLoad(ctx context.Context, p *figure.Part) error {
	p.Note("The handlers, the state machine and the adapters on fakes of DynamoDB and Step Functions, with the limits of a partition key, the quotas of most regions, " +
		"1,000 concurrent functions, cold starts and delays, in virtual time; half of the runs are of one tenant. Not in it: KMS, the relay of events, and a limit of machines a second.")
	return benchPart(ctx, p, "load", 0.05)
}

// benchPart adds the numbers of a measurement.
func benchPart(ctx context.Context, p *figure.Part, only string, noise float64) error {
	rows, err := bench(ctx, only)
	if err != nil {
		return err
	}
	for _, row := range rows {
		addQuantities(p, row, noise)
	}
	return nil
}

// addQuantities adds the numbers of a row. "p50 / p99" with "3 / 8 ms" are two figures.
func addQuantities(p *figure.Part, row benchRow, noise float64) {
	found := quantities.FindAllString(row.Value, -1)
	unit := strings.TrimSpace(quantities.ReplaceAllString(row.Value, ""))
	unit = strings.TrimSpace(strings.Trim(unit, "/, "))
	for i, text := range found {
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			continue
		}
		p.Add(figure.Figure{Name: row.What + ": " + labelOf(row.Figure, i, len(found)), Value: value, Unit: unit, Better: direction(row.Figure + " " + unit), Noise: noise})
	}
}

// labelOf returns the label of the i-th of n numbers: that of "time, p50 / p99" is "time, p50" for
// the first, and that of "runs, failed" is "failed" for the second.
func labelOf(label string, i, n int) string {
	if n == 1 {
		return label
	}
	before, list := "", label
	if at := strings.LastIndexAny(label, ",:"); at >= 0 && strings.Contains(label[at:], " / ") {
		before, list = label[:at+1]+" ", strings.TrimSpace(label[at+1:])
	}
	for _, separator := range []string{" / ", ", "} {
		if labels := strings.Split(list, separator); len(labels) == n {
			return before + strings.TrimSpace(labels[i])
		}
	}
	return fmt.Sprintf("%s, number %d", label, i+1)
}

// direction says what is better of a figure, by its unit.
func direction(unit string) figure.Better {
	switch {
	case strings.Contains(unit, "/s"), strings.Contains(unit, "per second"):
		return figure.More
	case strings.HasSuffix(unit, "s"), strings.HasSuffix(unit, "B"):
		return figure.Less
	}
	return figure.Neither
}

type benchRow struct{ What, Figure, Value string }

// bench runs measurements of the benchmarks.
func bench(ctx context.Context, only string) ([]benchRow, error) {
	command := exec.CommandContext(ctx, "go", "run", "./local/proof/bench", "-only", only, "-json")
	command.Stderr = os.Stderr
	text, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("the benchmarks: %w", err)
	}
	var document struct{ Rows []benchRow }
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("cannot read the benchmarks: %w", err)
	}
	return document.Rows, nil
}

// addDisk adds how often a second this disk can keep a page of 4 KiB.
func addDisk(p *figure.Part) error {
	file, err := os.CreateTemp("", "sortie-report-")
	if err != nil {
		return fmt.Errorf("cannot measure the disk: %w", err)
	}
	defer func() { _ = file.Close(); _ = os.Remove(file.Name()) }()
	const writes = 500
	started := time.Now()
	for range writes {
		if _, err := file.Write(make([]byte, 4<<10)); err != nil {
			return fmt.Errorf("cannot measure the disk: %w", err)
		}
		if err := file.Sync(); err != nil {
			return fmt.Errorf("cannot measure the disk: %w", err)
		}
	}
	p.Add(figure.Figure{Name: "fsyncs of this disk", Value: writes / time.Since(started).Seconds(), Unit: "1/s", Noise: 0.3})
	return nil
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
)

// playedParts runs a part that measures cases in its own process. It calls do with each result.
func playedParts[R any](ctx context.Context, part string, do func(R)) error {
	folder, err := os.MkdirTemp("", "sortie-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	c, err := startPart(part, folder+"/results")
	if err != nil {
		return err
	}
	text, err := io.ReadAll(c.output)
	if err = errors.Join(err, c.command.Wait()); err != nil {
		return fmt.Errorf("%w: %.2000s", err, text)
	}
	file, err := os.Open(folder + "/results") //nolint:gosec // the folder is this measurement's
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	for results := json.NewDecoder(file); ; {
		var r R
		if err := results.Decode(&r); errors.Is(err, io.EOF) {
			return ctx.Err()
		} else if err != nil {
			return err
		}
		do(r)
	}
}

// playParts measures cases as tests and writes the results to a file. It does not return.
func playParts[C, R any](path string, cases []C, name func(C) string, measure func(*testing.T, C) R) {
	file, err := os.Create(path) //nolint:gosec // the path is from playedParts
	if err != nil {
		os.Exit(failed(err))
	}
	var tests []testing.InternalTest
	for _, c := range cases {
		tests = append(tests, testing.InternalTest{Name: name(c), F: func(t *testing.T) {
			if err := json.NewEncoder(file).Encode(measure(t, c)); err != nil {
				t.Error(err)
			}
		}})
	}
	testing.Main(func(string, string) (bool, error) { return true, nil }, tests, nil, nil)
}

package main

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// measurePrograms measures programs of the host, which sortie-exec runs like in an
// installation.
func measurePrograms(ctx context.Context, t *table) error {
	folder, err := os.MkdirTemp("", "sortie-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	small := filepath.Join(folder, "sortie-exec")
	if err := build(ctx, small, "./shared/sdk/go/sortie-exec"); err != nil {
		return err
	}
	for _, kind := range []struct {
		name, supervisor string
		runs             int
	}{
		{"runs, machines are real processes", small, 600},
		{"runs, without sortie-exec beside the program", "", 150},
	} {
		if err := measureProgram(ctx, t, kind.name, kind.supervisor, kind.runs); err != nil {
			return err
		}
	}
	return nil
}

func measureProgram(ctx context.Context, t *table, name, supervisor string, runs int) error {
	c, addresses, err := startStack("-supervisor", supervisor)
	if err != nil {
		return err
	}
	defer func() { _ = c.end() }()
	token, err := os.ReadFile(addresses.TokenFile)
	if err != nil {
		return err
	}
	of := func(body string) starter {
		return func(ctx context.Context) (s status, err error) {
			s.url, s.token = addresses.URL, strings.TrimSpace(string(token))
			var accepted contract.RunAccepted
			err = requestAs(ctx, s.token, http.MethodPost, s.url+"/v1/runs", body, &accepted)
			s.TaskID, s.Status = accepted.TaskID, "processing"
			return s, err
		}
	}
	program := of(`{"image":"exec:/bin/true"}`)
	if _, err := startMany(ctx, 10, 1, program); err != nil {
		return err
	}
	alone, err := startMany(ctx, 40, 1, program)
	if err != nil {
		return err
	}
	var ends []time.Duration
	for _, each := range alone {
		ends = append(ends, each.end)
	}
	t.add(name, "one after another, POST to the end, p50 / p99", "%.0f / %.0f ms", millis(percentile(ends, 0.5)), millis(percentile(ends, 0.99)))
	if err := measureMany(ctx, t, name, c, runs, program); err != nil {
		return err
	}
	return measureSupervisors(ctx, t, name, c, of(`{"image":"exec:/bin/sleep","command":["3"]}`))
}

// measureSupervisors measures the memory of the supervisors of 20 running programs.
func measureSupervisors(ctx context.Context, t *table, name string, c *child, program starter) error {
	const count = 20
	done := make(chan error, 1)
	go func() { _, err := startMany(ctx, count, count, program); done <- err }()
	var most, share int64
	for {
		select {
		case err := <-done:
			t.add(name, "memory for each running program, resident / share of it", "%.1f / %.1f MB", float64(most)/count/1e6, float64(share)/count/1e6)
			return err
		case <-time.After(100 * time.Millisecond):
			resident, shared := childrenOf(c.command.Process.Pid)
			if resident > most {
				most, share = resident, shared
			}
		}
	}
}

// childrenOf returns the memory of a process's children in bytes. resident is the resident
// memory. In share, a page that n processes use counts 1/n.
func childrenOf(pid int) (resident, share int64) {
	names, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range names {
		stat, err := os.ReadFile(name)
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if err != nil || len(fields) < 2 || fields[1] != strconv.Itoa(pid) {
			continue
		}
		rollup, err := os.ReadFile(filepath.Join(filepath.Dir(name), "smaps_rollup"))
		if err == nil {
			resident += kilobytes(rollup, "Rss:")
			share += kilobytes(rollup, "Pss:")
		}
	}
	return resident, share
}

// startsProgram is the command of a supervisor; empty is the default.
func startsProgram(path, word string) []string {
	if path == "" {
		return nil
	}
	return []string{path, word}
}

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/local/proof/report/figure"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string) int {
	if len(args) > 0 && args[0] == "compare" {
		return compare(args[1:])
	}
	flags := flag.NewFlagSet("report", flag.ContinueOnError)
	only := flags.String("only", "", "parts, separated by commas; empty is all")
	folder := flags.String("folder", "local/proof/report", "where REPORT.md and results/ are written")
	list := flags.Bool("list", false, "print the names of the parts, and end")
	page := flags.Bool("page", false, "write REPORT.md from the kept results, and measure nothing")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	chosen, err := choose(*only)
	switch {
	case err != nil || flags.NArg() > 0:
		fmt.Fprintln(os.Stderr, "report:", errors.Join(err, argumentsLeft(flags.Args())))
		return 2
	case *list:
		for _, p := range parts() {
			fmt.Printf("%-14s %s (%s)\n", p.name, p.title, p.takes)
		}
		return 0
	case *page:
		chosen = nil
	}
	if err := measureAll(ctx, chosen, *folder); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		return 1
	}
	return 0
}

func argumentsLeft(args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%q is no argument of it: want flags, or compare OLD NEW", args[0])
}

// choose returns the parts with the names, all parts for an empty list.
func choose(only string) ([]part, error) {
	if only == "" {
		return parts(), nil
	}
	var chosen []part
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(parts(), func(p part) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-only: %q is no part: want some of %s", name, strings.Join(names(), ", "))
		}
		chosen = append(chosen, parts()[i])
	}
	return chosen, nil
}

func names() []string {
	var list []string
	for _, p := range parts() {
		list = append(list, p.name)
	}
	return list
}

// measureAll measures the parts, keeps their results, and writes the page.
func measureAll(ctx context.Context, chosen []part, folder string) error {
	var failed []error
	for _, p := range chosen {
		fmt.Fprintf(os.Stderr, "measuring %s (%s) ...\n", p.name, p.takes)
		if err := p.run(ctx, filepath.Join(folder, "results")); err != nil {
			failed = append(failed, fmt.Errorf("part %s: %w", p.name, err))
		}
	}
	results, err := figure.Load(filepath.Join(folder, "results"))
	if err != nil {
		return errors.Join(append(failed, err)...)
	}
	err = os.WriteFile(filepath.Join(folder, "REPORT.md"), []byte(figure.Page(names(), results)), 0o600)
	return errors.Join(append(failed, err)...)
}

// run measures the part and keeps its result.
func (p part) run(ctx context.Context, folder string) error {
	commit, err := commitOf(ctx)
	if err != nil {
		return err
	}
	started := time.Now()
	result := &figure.Part{
		Name: p.name, Title: p.title, Command: "make report PARTS=" + p.name, Commit: commit,
		Date: started.UTC().Format(time.DateOnly), Machine: machine(),
	}
	if err := p.measure(ctx, result); err != nil {
		return err
	}
	result.Seconds = int(time.Since(started).Seconds())
	return result.Save(folder)
}

// compare prints what differs between two folders of results.
func compare(args []string) int {
	if len(args) != 2 {
		fmt.Fprintln(os.Stderr, "report: want two folders of results: compare OLD NEW")
		return 2
	}
	was, err := figure.Load(args[0])
	is, other := figure.Load(args[1])
	if err = errors.Join(err, other); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		return 2
	}
	changes, alone := figure.Compare(was, is)
	worse := 0
	for _, c := range changes {
		if c.Worse {
			worse++
			fmt.Println("worse:", c)
		}
	}
	for _, c := range changes {
		if !c.Worse {
			fmt.Println("changed:", c)
		}
	}
	for _, name := range alone {
		fmt.Printf("not compared: only one report has the part %s\n", name)
	}
	fmt.Printf("%d figures became worse, %d changed otherwise\n", worse, len(changes)-worse)
	return min(worse, 1)
}

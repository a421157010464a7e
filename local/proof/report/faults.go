package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/local/proof/report/figure"
)

var (
	worlds     = regexp.MustCompile(`(\d+) seeds, [\d.]+ per second: (\d+) steps; (\d+) runs in (\d+) attempts on \d+ machines in (\d+) starts of the process`)
	askedTasks = regexp.MustCompile(`(\d+) seeds, [\d.]+ per second, \S+ simulated: (\d+) tasks in (\d+) attempts with (\d+) requests to engines.* (\d+) processes killed`)
	injections = regexp.MustCompile(`(?m)injected: (.*)$`)
	killed     = regexp.MustCompile(`(\d+) faults from seed \d+: (\d+) runs in (\d+) attempts, (\d+) repeated POSTs`)
)

// measureSimulation runs SEEDS worlds of each simulation. A violated invariant fails it.
func measureSimulation(ctx context.Context, p *figure.Part) error {
	seeds := strconv.Itoa(sized("SEEDS", 1000))
	p.Command += " SEEDS=" + seeds
	_, text, err := tests(ctx, "./local/proof/simulation", "./local/proof/simulation/answers", "-p", "1", "-run", "TestInvariants$", "-timeout", "6h", "-args", "-seeds="+seeds)
	if err != nil {
		return err
	}
	runs, err := numbers(worlds, text)
	if err != nil {
		return err
	}
	for i, name := range []string{"worlds of runs, a seed each", "steps in them", "runs", "attempts", "starts of the process"} {
		p.Count(name, runs[i], figure.Neither)
	}
	tasks, err := numbers(askedTasks, text)
	if err != nil {
		return err
	}
	for i, name := range []string{"worlds of inference tasks", "tasks", "attempts of tasks", "requests to engines", "processes killed beside tasks"} {
		p.Count(name, tasks[i], figure.Neither)
	}
	p.Zero("violated invariants", 0)
	match := injections.FindStringSubmatch(text)
	if match == nil {
		return fmt.Errorf("the output has nothing like %s", injections)
	}
	table := "| injected fault, survived each time | times |\n|---|---:|\n"
	for kind := range strings.SplitSeq(match[1], ", ") {
		i := strings.LastIndexByte(kind, ' ')
		table += fmt.Sprintf("| %s | %s |\n", kind[:i], kind[i+1:])
	}
	p.Tables = append(p.Tables, table)
	return nil
}

// measureKills kills a stack of real processes KILLS times under load.
func measureKills(ctx context.Context, p *figure.Part) error {
	kills := strconv.Itoa(sized("KILLS", 200))
	p.Command += " KILLS=" + kills
	_, text, err := tests(ctx, "./local/proof/chaos", "-run", "TestNoRunIsLost", "-timeout", "6h", "-args", "-kills="+kills)
	if err != nil {
		return err
	}
	counts, err := numbers(killed, text)
	if err != nil {
		return err
	}
	for i, name := range []string{"faults: kills, frozen and cloned workers, broken receivers", "accepted runs", "attempts", "repeated POSTs"} {
		p.Count(name, counts[i], figure.Neither)
	}
	p.Zero("runs that were lost, ended twice or left a process", 0)
	p.Note("The seeds are drawn from the clock, so the counts differ from report to report.")
	return nil
}

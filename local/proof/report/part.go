package main

import (
	"context"
	"os"
	"strconv"

	"github.com/sortie-dev/sortie/local/proof/report/figure"
)

// part is one part of the report.
type part struct {
	name, title string
	// takes says how long it takes on two cores.
	takes   string
	measure func(ctx context.Context, p *figure.Part) error
}

// parts returns all parts in the order of the page.
func parts() []part {
	return []part{
		{"requirements", "Requirements and their tests", "a minute", measureRequirements},
		{"recorded", "Executions recorded on AWS", "a second; needs RECORDINGS", measureRecorded},
		{"attacks", "Attack tables", "2 minutes", measureAttacks},
		{"simulation", "Simulation", "SEEDS=1000: 30 minutes", measureSimulation},
		{"mutations", "Mutation score", "MUTANTS=40 per package: 40 minutes", measureMutations},
		{"kills", "Kills", "KILLS=200: 10 minutes", measureKills},
		{"fuzz", "Fuzzing", "FUZZTIME=20s per target: 20 minutes", measureFuzz},
		{"flaky", "Flaky tests", "ROUNDS=20: 90 minutes", measureFlaky},
		{"counts", "What a run costs here", "a minute", measureCounts},
		{"cost", "What a run costs on AWS", "no time: make cost has measured it", measureCost},
		{"speed", "Speed", "3 minutes", measureSpeed},
		{"load", "AWS under load", "20 minutes of CPU", measureLoad},
		{"schedulers", "Beside other schedulers", "10 minutes, and as long to build them", measureSchedulers},
		{"streams", "Beside other event servers", "5 minutes", measureStreams},
		{"inference", "Beside other inference gateways", "10 minutes", measureInference},
	}
}

// sized returns the variable of the environment as a number, else the default. The Makefile
// passes the variables on.
func sized(variable string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil && n > 0 {
		return n
	}
	return otherwise
}

// Validate checks the OpenAPI document, the server, the state machine and the
// synthesised template with validators, generators and clients of other projects.
//
//	go run ./local/proof/validate [-quick] [-only NAME,...]
//
// It runs in the repository's folder. It installs the validators, in the
// versions and with the hashes of the lock files beside this file, under
// ${XDG_CACHE_HOME:-~/.cache}/sortie. A finding is a failure unless the
// configuration of its validator lists it with a reason.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// check is one validator with what it examines.
type check struct {
	name string
	// quick checks need no synthesised template and end in seconds.
	quick bool
	run   func(context.Context, *kit) error
}

func checks() []check {
	return []check{
		{"redocly", true, redocly},
		{"spectral", true, spectral},
		{"asl-validator", true, stateMachine},
		{"schemathesis-client", true, clientRequests},
		{"schemathesis-worker", true, workerRequests},
		{"oapi-codegen", true, goClient},
		{"openapi-generator", true, pythonClient},
		{"eventsource", true, eventSource},
		{"standardwebhooks", true, receivers},
		{"openai", true, openAI},
		{"autobahn", false, autobahn},
		{"chromium", false, browser},
		{"cfn-lint", false, cfnLint},
		{"checkov", false, checkov},
	}
}

func main() {
	quick := flag.Bool("quick", false, "run the quick checks with few examples")
	only := flag.String("only", "", "run these checks alone, separated by commas")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	k := &kit{quick: *quick, lookup: os.LookupEnv, environ: os.Environ()}
	err := validate(ctx, k, *only)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "validate:", err)
		os.Exit(1)
	}
}

// missing is a program that this machine lacks. The check is left out unless CI is set.
type missing struct{ error }

func (k *kit) complete() bool {
	ci, _ := k.lookup("CI")
	return ci != ""
}

// validate runs every selected check, also after one that failed.
func validate(ctx context.Context, k *kit, only string) error {
	if err := k.prepare(ctx); err != nil {
		return err
	}
	var failed []error
	for _, c := range checks() {
		if k.quick && !c.quick || only != "" && !slices.Contains(strings.Split(only, ","), c.name) {
			continue
		}
		began := time.Now()
		verdict := "ok"
		err := c.run(ctx, k)
		if absent, ok := errors.AsType[missing](err); ok && !k.complete() {
			fmt.Printf("%-20s left out: %v\n", c.name, absent)
			continue
		}
		if err != nil {
			failed, verdict = append(failed, fmt.Errorf("%s: %w", c.name, err)), "FAILED"
		}
		fmt.Printf("%-20s %-6s %5.1f s\n", c.name, verdict, time.Since(began).Seconds())
	}
	failed = append(failed, k.close())
	return errors.Join(failed...)
}

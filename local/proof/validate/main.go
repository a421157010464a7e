// Validate checks the OpenAPI document, the server, the state machine and the synthesised
// template with third-party validators, generators and clients.
//
//	go run ./local/proof/validate [-quick] [-only NAME,...]
//
// It runs in the repository's folder. It installs the validators under
// ${XDG_CACHE_HOME:-~/.cache}/sortie, in the versions and with the hashes of the lock files in
// this folder. A finding is a failure unless the configuration of its validator lists it with a
// reason.
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

	"golang.org/x/sync/errgroup"
)

// check is one validator with the object of its check.
type check struct {
	name string
	// quick checks need no synthesised template and take seconds.
	quick bool
	// named checks run only if -only names them.
	named bool
	run   func(context.Context, *kit) error
}

func checks() []check {
	return []check{
		{name: "redocly", quick: true, run: redocly},
		{name: "spectral", quick: true, run: spectral},
		{name: "asl-validator", quick: true, run: stateMachine},
		{name: "schemathesis-client", quick: true, run: clientRequests},
		{name: "schemathesis-inference", run: inferenceRequests},
		{name: "schemathesis-worker", quick: true, run: workerRequests},
		{name: "oapi-codegen", quick: true, run: goClient},
		{name: "openapi-generator", quick: true, run: pythonClient},
		{name: "eventsource", quick: true, run: eventSource},
		{name: "standardwebhooks", quick: true, run: receivers},
		{name: "openai", quick: true, run: openAI},
		{name: "openai-llamacpp", quick: true, named: true, run: openAILlama},
		{name: "openai-vllm", quick: true, named: true, run: openAIVLLM},
		{name: "libraries", quick: true, run: clientLibraries},
		{name: "libraries-llamacpp", quick: true, named: true, run: librariesLlama},
		{name: "libraries-vllm", quick: true, named: true, run: librariesVLLM},
		{name: "autobahn", run: autobahn},
		{name: "chromium", run: browser},
		{name: "promtool", run: alertRules},
		{name: "cfn-lint", run: cfnLint},
		{name: "checkov", run: checkov},
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

// missing is the error for a program that this machine does not have. The check is skipped
// unless CI is set.
type missing struct{ error }

func (k *kit) complete() bool {
	ci, _ := k.lookup("CI")
	return ci != ""
}

// quickAtOnce is the number of concurrent quick checks. One of them takes as long as all others.
const quickAtOnce = 2

// validate runs every selected check. It continues after a failure and returns all errors.
func validate(ctx context.Context, k *kit, only string) error {
	if err := k.prepare(ctx); err != nil {
		return err
	}
	var failed []error
	var running errgroup.Group
	running.SetLimit(1)
	if k.quick {
		running.SetLimit(quickAtOnce)
	}
	for _, c := range checks() {
		if k.quick && !c.quick || c.named && only == "" || only != "" && !slices.Contains(strings.Split(only, ","), c.name) {
			continue
		}
		running.Go(func() error {
			began := time.Now()
			verdict := "ok"
			err := c.run(ctx, k)
			k.mu.Lock()
			defer k.mu.Unlock()
			if absent, ok := errors.AsType[missing](err); ok && !k.complete() {
				fmt.Printf("%-20s left out: %v\n", c.name, absent)
				return nil
			}
			if err != nil {
				failed, verdict = append(failed, fmt.Errorf("%s: %w", c.name, err)), "FAILED"
			}
			fmt.Printf("%-20s %-6s %5.1f s\n", c.name, verdict, time.Since(began).Seconds())
			return nil
		})
	}
	_ = running.Wait() // failed has the errors
	failed = append(failed, k.close())
	return errors.Join(failed...)
}

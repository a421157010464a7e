package process

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/setting"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/metric"
)

// Process runs one function. New makes it.
type Process struct {
	// Name is the name of the function and the metrics' dimension "function".
	Name string
	// Log writes JSON lines.
	Log *slog.Logger
	// Stage is the name of the deployment (SORTIE_STAGE).
	Stage string

	host    Host
	env     *environment
	check   bool
	started time.Time
	calls   atomic.Int64
	// serve runs Lambda's event loop.
	serve func(handler any)
}

// New makes the process of the named function on a host.
func New(name string, host Host) *Process {
	p := &Process{Name: name, host: host, env: &environment{lookup: host.Env}, started: host.Clock.Now()}
	p.serve = p.loop
	p.Log = newLog(host.Out, name, p.lambda("AWS_LAMBDA_FUNCTION_VERSION"))
	p.check = slices.Equal(host.Args, []string{"-check"})
	if len(host.Args) > 0 && !p.check {
		p.problem(fmt.Errorf("unknown arguments %q, want none or -check", host.Args))
	}
	p.Stage = p.Need("SORTIE_STAGE")
	return p
}

// NewStep makes the process of the step function named by SORTIE_STEP. The name must be in
// functions.
func NewStep(functions []string, host Host) *Process {
	name, _ := host.Env("SORTIE_STEP")
	p := New(cmp.Or(name, "steps"), host)
	if p.Need("SORTIE_STEP") != "" && !slices.Contains(functions, name) {
		p.problem(fmt.Errorf("SORTIE_STEP: %q is not a step function, want one of %s", name, strings.Join(functions, ", ")))
	}
	return p
}

// lambda returns the value of a variable that Lambda sets.
func (p *Process) lambda(name string) string {
	value, _ := p.host.Env(name)
	return value
}

// Version returns SORTIE_VERSION, or Lambda's version number if it is not set.
func (p *Process) Version() string {
	return p.Option("SORTIE_VERSION", p.lambda("AWS_LAMBDA_FUNCTION_VERSION"))
}

// Clock returns the clock of the host.
func (p *Process) Clock() clock.Clock { return p.host.Clock }

// Rand returns a random number, 0 <= n < 1.
func (p *Process) Rand() float64 { return mathrand.Float64() } //nolint:gosec // jitter needs no secrecy

// Hex returns n random bytes in hexadecimal.
func (p *Process) Hex(n int) string {
	text := make([]byte, n)
	_, _ = rand.Read(text) // Read never fails (crypto/rand)
	return hex.EncodeToString(text)
}

// run serves the handler. With -check it prints the variables or the problems instead. It
// returns only if the host's Exit returns.
func (p *Process) run(handler any) {
	if err := setting.Misspelt(p.host.Environ, p.env.known); err != nil {
		p.problem(err)
	}
	switch problems := errors.Join(p.env.problems...); {
	case problems != nil && p.check:
		for line := range strings.SplitSeq(problems.Error(), "\n") {
			p.print(p.host.Err, line)
		}
		p.host.Exit(2)
	case problems != nil:
		p.Log.Error("the function is not configured", "problems", strings.Split(problems.Error(), "\n"))
		p.host.Exit(1)
	case p.check:
		slices.Sort(p.env.read)
		for _, name := range p.env.read {
			p.print(p.host.Out, name)
		}
		p.host.Exit(0)
	default:
		p.serve(handler)
	}
}

func (p *Process) print(to io.Writer, line string) {
	if _, err := fmt.Fprintln(to, line); err != nil {
		p.host.Exit(1)
	}
}

// begin starts one call. end writes the metrics of the call.
func (p *Process) begin(ctx context.Context) (_ context.Context, end func()) {
	c := &call{first: p.calls.Add(1) == 1, counts: &metric.Counts{}}
	if l, ok := lambdacontext.FromContext(ctx); ok {
		c.id = l.AwsRequestID
	}
	ctx = context.WithValue(ctx, callKey{}, c)
	ctx = lambdakit.WithRecorder(lambdakit.WithCounter(ctx, c.counts.Add), c.counts.Record)
	ctx = lambdakit.WithObserver(ctx, c.counts.Observe)
	if c.first {
		// There is no metric: CloudWatch bills a metric for each hour in which it is published,
		// and a function that a schedule invokes starts every few hours.
		took := p.host.Clock.Now().Sub(p.started)
		p.Log.InfoContext(ctx, "cold start", "init_ms", took.Milliseconds())
	}
	return ctx, func() {
		err := c.counts.Write(p.host.Out, p.host.Clock.Now(), metric.Dimensions{Function: p.Name, Stage: p.Stage})
		if err != nil {
			p.Log.ErrorContext(ctx, "cannot write the metrics", "error", err)
		}
	}
}

// The program bench measures what is deployed and prints one table: how large
// each function's zip is, how long its process takes until it asks for its
// first event, how much memory it then has, and how long synthesis takes; where
// AWS_ENDPOINT_URL leads to LocalStack, also how long a deployment does.
//
// It plays Lambda's runtime API on loopback, so the figures are this host's: on
// Lambda a function of 256 MB has a seventh of a core. It runs in infra, after
// "make synth" for this host.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"text/tabwriter"
	"time"

	"github.com/sortie-dev/sortie/infra/stack"
	"github.com/sortie-dev/sortie/infra/template"
)

// starts is how often each function is started; the median counts.
const starts = 7

// goalZip is the most that a zip should have.
const goalZip = 15 << 20

func main() {
	if err := measure(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func measure(ctx context.Context) error {
	made, err := template.Read(filepath.Join(".cdk", "out", "sortie-dev.template.json"))
	if err != nil {
		return err
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(out, "function\tzip MB\tprogram MB\tstart ms\tmemory MB\t\n")
	for _, name := range stack.Functions() {
		function := made.Function(name)
		if function == nil {
			return fmt.Errorf("the template has no function %s", name)
		}
		program := filepath.Join(".build", runtime.GOARCH, stack.Program(name), "bootstrap")
		size, zipped, err := sizes(program)
		if err != nil {
			return err
		}
		began, err := startOften(ctx, program, function.Environment())
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		over := ""
		if zipped > goalZip {
			over = "over the goal of 15 MB"
		}
		fmt.Fprintf(out, "%s\t%.1f\t%.1f\t%.1f\t%.1f\t%s\n", name, mega(zipped), mega(size),
			float64(began.took.Microseconds())/1000, mega(began.memory), over)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("cannot write the table: %w", err)
	}
	return tools(ctx, os.Getenv("AWS_ENDPOINT_URL"))
}

func mega(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// now is the host's time.
func now() time.Time { return time.Now() }

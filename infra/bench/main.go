// The program bench prints a table of the deployed functions: the size of the zip, the time
// until the process requests its first event, its memory at that time, and the time of
// synthesis. If AWS_ENDPOINT_URL is LocalStack's, it also prints the time of a deployment.
//
// It serves Lambda's Runtime API on loopback, so the results are those of this host. On Lambda
// a function of 256 MB has a seventh of a core. Run it in infra, after "make synth" for this
// host.
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
	"github.com/sortie-dev/sortie/local/sortie/template"
)

// starts is the number of starts of each function. The table contains the median.
const starts = 7

// goalZip is the maximum size of a zip that we aim for.
const goalZip = 15 << 20

func main() {
	if err := measure(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func measure(ctx context.Context) error {
	t, err := template.Read(filepath.Join(".cdk", "out", "sortie-dev.template.json"))
	if err != nil {
		return err
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(out, "function\tzip MB\tprogram MB\tstart ms\tmemory MB\t\n")
	for _, name := range stack.Functions() {
		function := t.Function(name)
		if function == nil {
			continue // this stage does not have it
		}
		program := filepath.Join(".build", runtime.GOARCH, stack.Program(name), "bootstrap")
		size, zipped, err := sizes(program)
		if err != nil {
			return err
		}
		median, err := startOften(ctx, program, function.Environment())
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		over := ""
		if zipped > goalZip {
			over = "over the goal of 15 MB"
		}
		fmt.Fprintf(out, "%s\t%.1f\t%.1f\t%.1f\t%.1f\t%s\n", name, mega(zipped), mega(size),
			float64(median.took.Microseconds())/1000, mega(median.memory), over)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("cannot write the table: %w", err)
	}
	return tools(ctx, os.Getenv("AWS_ENDPOINT_URL"))
}

func mega(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// now returns the time of the host.
func now() time.Time { return time.Now() }

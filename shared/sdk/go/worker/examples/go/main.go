// Go is an example of a worker that uses the SDK. It writes an XML file in
// thirty steps, reports its progress, and stops when the task is cancelled.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/sdk/go/worker"
)

const steps = 30

func main() { os.Exit(worker.Main(work)) }

func work(ctx context.Context, t *worker.Task) (worker.Result, error) {
	var text strings.Builder
	fmt.Fprintf(&text, "<steps task=%q>\n", t.ID())
	for step := 1; step <= steps; step++ {
		select {
		case <-time.After(100 * time.Millisecond): // replace this with the real work
		case <-ctx.Done(): // cancelled, superseded, out of time, or SIGTERM
			return worker.Result{PartialProgress: map[string]int{"steps": step - 1}}, context.Cause(ctx)
		}
		fmt.Fprintf(&text, "  <step n=\"%d\"/>\n", step)
		t.Progress(100*step/steps, fmt.Sprintf("step %d of %d", step, steps))
	}
	text.WriteString("</steps>\n")
	output := strings.NewReader(text.String())
	return worker.Result{}, t.UploadOutput(ctx, output, output.Size(), "application/xml")
}

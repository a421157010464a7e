package archtest

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// The kinds of timers, by what happens if the work of the timer fails. A wake-up in memory
// must not be dropped before its effect is stored.
const (
	// kept: the wake-up remains until its effect is stored. It is retried after 100 ms to 5 s.
	kept = "kept"
	// period: the work runs again after every interval, whether it failed or not.
	period = "period"
	// pause: a delay between the tries of a loop. The loop ends when it succeeds or when its
	// caller ends.
	pause = "pause"
	// bound: the time limit of one call. The caller gets the failure. The timer starts no work.
	bound = "bound"
	// memory: the work changes only the memory of this process and cannot fail.
	memory = "memory"
)

// timerUse is the number of timers in a file, and their kind.
type timerUse struct {
	count int
	kinds string
}

// timers lists the files of the servers, the workers and the command line that use timers.
var timers = map[string]timerUse{
	"functions/console/stream.go":                    {2, period}, // checks of the session of an open stream
	"shared/adapter/timer/timer.go":                  {1, kept},   // wake-ups of jobs
	"local/twin/engine/run.go":                       {2, kept},   // deadlines and calls of executions; retried after a second
	"local/twin/stack/deliver.go":                    {1, kept},   // wake-ups of webhooks
	"local/twin/stack/loops.go":                      {1, period}, // sweeps; they also find wake-ups that a crash lost
	"local/twin/stack/relay.go":                      {4, period}, // relays of events from the stored changes
	"local/twin/stack/containers.go":                 {1, period}, // removal of unused images
	"local/twin/stack/stack.go":                      {1, bound},  // the shutdown of the server
	"local/twin/flymachines/life.go":                 {2, kept},   // kills and delays of machines; retried after a second
	"local/twin/flymachines/delays.go":               {1, bound},  //
	"local/twin/flymachines/read.go":                 {1, bound},  // waits of clients
	"local/twin/flymachines/server.go":               {1, pause},  // waits for the lock of the folder
	"shared/sdk/go/worker/supervisor/run.go":         {1, bound},  // waits for the rest of the output
	"shared/sdk/go/worker/supervisor/handle.go":      {1, pause},  // polls a supervisor until it has ended
	"shared/app/inferences/serve.go":                 {1, period}, // heartbeats of inference tasks, by their dispatcher
	"shared/app/inferences/shadow.go":                {1, period}, // a copy checks that its pool has a free slot
	"shared/app/inferences/busy.go":                  {1, pause},  // before the next request to a busy engine
	"shared/app/inferences/advance.go":               {1, pause},  // before the retry of a failed step
	"shared/app/inferences/serve_pool.go":            {1, period}, // polls for tasks
	"shared/app/balance/replicas.go":                 {1, pause},  // waits for a replica
	"shared/app/balance/lease.go":                    {1, pause},  // waits for a free slot
	"shared/app/answer/writer.go":                    {1, pause},  // collects a batch; its writer retries it
	"shared/app/runs/start.go":                       {1, bound},  // waits in the queue for a start; the queue is stored
	"shared/app/warm/create.go":                      {2, pause},  // the rate of starts in a sweep
	"shared/app/runs/warm_claim.go":                  {1, pause},  //
	"shared/app/pools/reload.go":                     {1, pause},  //
	"shared/app/delivery/turns.go":                   {2, pause},  // a relay waits for its turn to write to a stream
	"shared/app/runs/query.go":                       {2, bound},  // waits of clients
	"shared/app/inferences/follow.go":                {1, bound},  // waits of readers for a settlement
	"shared/app/logs/follow.go":                      {1, bound},  // waits of clients
	"shared/app/runs/machine.go":                     {1, bound},  // waits for the launch of a machine that was already reported
	"shared/sdk/go/worker/heartbeat.go":              {1, period}, // heartbeats of workers
	"shared/sdk/go/worker/call.go":                   {1, pause},  //
	"shared/sdk/go/worker/output.go":                 {3, pause},  // delays and retries of sending output
	"shared/sdk/go/worker/complete.go":               {1, bound},  //
	"shared/sdk/go/worker/run.go":                    {1, bound},  // the grace period of a stop
	"shared/sdk/go/worker/task.go":                   {1, bound},  // the deadline of the attempt
	"shared/sdk/go/worker/upload.go":                 {1, bound},  //
	"shared/sdk/go/worker/wrap/program.go":           {2, bound},  // SIGKILL after the grace period; repeated at the end of the process tree
	"shared/sdk/go/worker/proctree/tree.go":          {2, pause},  // kills until no process is left
	"shared/sdk/go/worker/proctree/group_linux.go":   {2, pause},  //
	"shared/sdk/go/worker/proctree/orphans_linux.go": {1, period}, //
	"shared/sdk/go/worker/examples/go/main.go":       {1, bound},  //
	"shared/sdk/go/client/transport.go":              {1, pause},  // before the retry of a request
	"shared/sdk/go/client/outage.go":                 {1, pause},  //
	"shared/sdk/go/client/task.go":                   {2, pause},  //
	"shared/sdk/go/client/stream.go":                 {2, bound},  // silence of a stream, and the pause before it connects again
	"shared/adapter/otlp/exporter.go":                {1, pause},  // export of spans; an outage loses them, as OpenTelemetry allows
	"shared/adapter/engine/limits.go":                {1, memory}, //
	"shared/adapter/sqlite/lock.go":                  {1, pause},  //
	"shared/adapter/mockengine/course.go":            {1, bound},  //
	"shared/adapter/mockengine/limits.go":            {1, bound},  //
	"shared/adapter/fly/runner.go":                   {1, pause},  //
	"shared/adapter/kubernetes/launch.go":            {3, pause},  //
	"shared/adapter/kubernetes/runner.go":            {4, pause},  //
	"shared/adapter/dynamo/store.go":                 {1, pause},  //
	"shared/adapter/container/wait.go":               {1, pause},  //
	"shared/adapter/container/stop.go":               {2, kept},   // SIGKILL after the grace period
	"shared/app/stream/push.go":                      {1, pause},  //
	"shared/app/stream/follow.go":                    {4, bound},  // lifetimes of streams
	"shared/app/stream/topic.go":                     {2, period}, // polls a stream
	"shared/base/hook/client.go":                     {2, bound},  //
	"shared/base/hook/mail.go":                       {1, bound},  //
	"shared/wire/httpkit/padding.go":                 {1, period}, //
	"shared/wire/httpkit/eventstream.go":             {1, bound},  //
	"shared/wire/httpkit/revocation.go":              {2, period}, // checks the tokens of open requests
	"shared/wire/httpkit/slowbody.go":                {2, bound},  //
	"functions/console/inference/playground.go":      {1, bound},  // waits for the rest of an answer
	"functions/watch/agent.go":                       {1, period}, // reports of a cluster
	"functions/worker/source/client.go":              {3, pause},  //
	"functions/stream/watch.go":                      {1, bound},  //
	"local/sortie/display/progress.go":               {1, period}, //
	"local/sortie/conformance/check.go":              {1, pause},  // waits for the worker of "sortie worker check"
	"local/sortie/command/ask.go":                    {1, pause},  //
	"local/sortie/command/runs_watch.go":             {1, period}, //
	"local/sortie/stage/deployed.go":                 {1, pause},  //
	"local/sortie/client/call.go":                    {1, pause},  //
	"local/sortie/client/events.go":                  {1, bound},  //
}

// TestTimersAreListed checks that the table lists all files with timers, and how many each
// has.
func TestTimersAreListed(t *testing.T) {
	t.Parallel()
	found := map[string]int{}
	for _, s := range sources(t) {
		if s.Test() || !hasTimers(s.Path) {
			continue
		}
		ast.Inspect(s.File, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && startsTimer(call) {
				found[s.Path]++
			}
			return true
		})
	}
	for path, count := range found {
		if timers[path].count != count {
			t.Errorf("%s: got %d timers, want the %d of the table; say in timers what happens when their work fails", path, count, timers[path].count)
		}
	}
	for path := range timers {
		if found[path] == 0 {
			t.Errorf("%s: got no timer, want the table without it", path)
		}
	}
}

// hasTimers reports whether a file belongs to a running system, so that its timers must be
// listed. The clock itself, tests, measurements and fake platforms are excluded.
func hasTimers(path string) bool {
	for _, part := range []string{"shared/base/clock/", "local/proof/", "local/samples/", "infra/"} {
		if strings.HasPrefix(path, part) {
			return false
		}
	}
	if rest, ok := strings.CutPrefix(path, "local/twin/"); ok {
		part, _, _ := strings.Cut(rest, "/")
		return slices.Contains([]string{"stack", "engine", "flymachines"}, part)
	}
	return true
}

func startsTimer(call *ast.CallExpr) bool {
	function, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	of, _ := function.X.(*ast.Ident)
	switch function.Sel.Name {
	case "NewTimer", "NewTicker":
		return true
	case "Sleep", "AfterFunc", "Every":
		return of != nil && (of.Name == "clock" || of.Name == "time")
	case "After", "Tick":
		return of != nil && of.Name == "time"
	}
	return false
}

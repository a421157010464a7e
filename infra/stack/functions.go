package stack

import (
	"cmp"
	"maps"
	"slices"

	"github.com/sortie-dev/sortie/functions/activity"
	"github.com/sortie-dev/sortie/functions/callback"
	"github.com/sortie-dev/sortie/functions/console"
	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/control"
	"github.com/sortie-dev/sortie/functions/download"
	"github.com/sortie-dev/sortie/functions/events"
	"github.com/sortie-dev/sortie/functions/export"
	"github.com/sortie-dev/sortie/functions/inference"
	"github.com/sortie-dev/sortie/functions/jobs"
	"github.com/sortie-dev/sortie/functions/metrics"
	"github.com/sortie-dev/sortie/functions/openai"
	"github.com/sortie-dev/sortie/functions/registry"
	"github.com/sortie-dev/sortie/functions/runs"
	"github.com/sortie-dev/sortie/functions/status"
	"github.com/sortie-dev/sortie/functions/stream"
	"github.com/sortie-dev/sortie/functions/tasks"
	"github.com/sortie-dev/sortie/functions/webhooks"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// kind is the caller of a function.
type kind string

const (
	front kind = "front" // API Gateway
	step  kind = "step"  // the state machine
	sweep kind = "sweep" // a schedule, and the end of executions
	relay kind = "relay" // the table's stream
	probe kind = "probe" // a schedule
	timer kind = "timer" // the schedules of jobs
	queue kind = "queue" // the queue of webhooks
	gate  kind = "gate"  // the WebSocket API
	crowd kind = "crowd" // the queue of tenants with connections
	shift kind = "shift" // commits and sweeps, to serve the tasks of a pool
)

// timeouts are in seconds. They are shorter than the time for which the caller waits: API
// Gateway 29 s (15 min for a streamed response), the schedule a minute. A step waits up to 10 s
// for a machine, and the effects of its commit may take 2 s.
var timeouts = map[kind]int{front: int(httpTimeout.Seconds()), step: 60, sweep: 55, relay: 30, probe: 60, timer: 60, queue: deliverTimeout, gate: int(httpTimeout.Seconds()), crowd: pushTimeout, shift: shiftTimeout}

// shiftTimeout is AWS's maximum. dispatch.MostWithin, the longest deadline of an inference
// task, is derived from it.
const shiftTimeout = 900

// deliverTimeout is enough for more than two consecutive attempts of 15 s. After these the
// webhook is enqueued again.
const deliverTimeout = 60

// hookTimeout is the timeout of functions that call hooks. It is enough for three attempts of
// 30 s with pauses of 5 s, and the rest of a step.
const hookTimeout = 120

// hooks are the step functions with hookTimeout.
var hooks = []string{"constrain", "act", "terminate"}

// memories contains the memory in MB of functions that need more than defaultMemory. The sweep
// reads a page of records and of machines in each of its workers. deliver sends to ten webhooks
// concurrently, with up to ten events of 64 KiB each. push serves ten tenants concurrently.
var memories = map[string]int{"sweep": 256, "deliver": 256, "push": 256}

// streamTimeout is the timeout of a streamed response in seconds: a download of 8 MiB at 140
// kB/s, the rate of a slow phone. Larger outputs are redirected to the bucket. A client that
// follows a log connects again.
const streamTimeout = 60

// streamTimeouts are the timeouts of functions with longer streams, in seconds. API Gateway
// ends a response after 15 minutes.
var streamTimeouts = map[string]int{"stream": 899, "inference": 899}

// use is something that a function uses. uses.go lists its variables and permissions.
type use string

const (
	configured  use = "configured"  // reads the settings of the service
	shares      use = "shares"      // answers CORS requests
	streams     use = "streams"     // streams its responses
	versioned   use = "versioned"   // shows the deployed version
	reads       use = "reads"       // reads the table
	writes      use = "writes"      // reads and writes the table
	lists       use = "lists"       // lists runs and other records by tenant
	ofJobs      use = "ofJobs"      // lists runs by job
	dues        use = "dues"        // lists records by due time
	surveys     use = "surveys"     // lists runs by machine
	starts      use = "starts"      // starts executions
	completes   use = "completes"   // completes the tokens of executions
	heartbeats  use = "heartbeats"  // sends heartbeats for those tokens
	stops       use = "stops"       // stops executions
	verifies    use = "verifies"    // reads the public keys of tokens
	signs       use = "signs"       // signs tokens
	signsEvents use = "signsEvents" // signs events
	clients     use = "clients"     // reads the tokens of clients
	machines    use = "machines"    // calls the runners
	offers      use = "offers"      // validates the runners that pools name
	outputs     use = "outputs"     // reads and writes the object store
	valued      use = "valued"      // reads the named secrets of tenants
	warnsOf     use = "warnsOf"     // asks whether tenants have named secrets
	addressed   use = "addressed"   // needs the API's own URL
	publishes   use = "publishes"   // publishes to the bus
	consumes    use = "consumes"    // reads the table's stream
	deadLetter  use = "deadLetter"  // sends to the dead-letter queue
	exports     use = "exports"     // exports an entity as a client
	wakes       use = "wakes"       // sets the schedules of jobs
	traced      use = "traced"      // exports traces
	seated      use = "seated"      // writes the seats of readers to the table
	queues      use = "queues"      // sends to the queue of webhooks
	receives    use = "receives"    // receives from the queue of webhooks
	occupies    use = "occupies"    // limits the connections of a tenant
	greets      use = "greets"      // registers new connections of the WebSocket API
	pushes      use = "pushes"      // sends to connections and receives from their queue
	rouses      use = "rouses"      // sends to the queue of tenants with connections
	dispatches  use = "dispatches"  // calls a dispatcher of inference tasks
	signsIn     use = "signsIn"     // stores the sessions of browsers
)

// function is one Lambda function. Its metrics, its role and its log group have the same name.
type function struct {
	kind kind
	uses []use
	// routes are the routes of a front door.
	routes []httpkit.Route
	// wanted, if not nil, reports whether a stage has the function.
	wanted func(Settings) bool
}

// functions contains all functions. A test compares the variables of each function with those
// that its program reads.
var functions = map[string]function{
	"export":    {kind: front, uses: []use{configured, shares, writes, starts, queues, clients}, routes: export.Routes(nil, nil)},
	"callback":  {kind: front, uses: []use{configured, shares, writes, completes, heartbeats, verifies, outputs}, routes: callback.Routes(nil, nil)},
	"console":   {kind: front, uses: []use{shares, streams, versioned, addressed, signsIn, clients}, routes: console.Routes(page.Config{})},
	"inference": {kind: front, uses: []use{configured, shares, streams, writes, lists, dispatches, verifies, outputs, clients}, routes: slices.Concat(inference.Routes(nil, nil), inference.BudgetRoutes(nil, nil), openai.Routes(nil, nil))},
	"dispatch":  {kind: shift, uses: []use{configured, writes, lists, outputs, dispatches, valued}},
	"status":    {kind: front, uses: []use{shares, reads, clients}, routes: status.Routes(nil, status.MaxWait)},
	"tasks":     {kind: front, uses: []use{configured, shares, streams, versioned, writes, lists, ofJobs, starts, completes, stops, machines, outputs, valued, verifies, dispatches, clients}, routes: slices.Concat(tasks.Routes(nil, nil, nil, tasks.Keys{}, ""), tasks.ReportRoutes(nil), tasks.RedeliveryRoutes(nil, nil), tasks.ReadyRoutes(nil, ""))},
	"jobs":      {kind: front, uses: []use{configured, shares, writes, lists, dues, ofJobs, starts, completes, outputs, wakes, warnsOf, clients}, routes: slices.Concat(jobs.Routes(nil, nil, nil), runs.Routes(nil, nil), runs.ChildRoutes(nil))},
	"control":   {kind: front, uses: []use{configured, shares, writes, lists, completes, offers, dispatches, valued, clients}, routes: control.Routes(nil)},
	"registry":  {kind: front, uses: []use{configured, shares, streams, writes, lists, outputs, clients}, routes: slices.Concat(registry.Routes(nil), registry.CatalogRoutes(nil), download.Routes(nil))},
	"metrics":   {kind: front, uses: []use{configured, shares, reads, lists, dues, clients}, routes: metrics.Routes(nil)},
	"events":    {kind: front, uses: []use{configured, shares, reads, signs, clients}, routes: append(events.Routes(nil, nil), activity.Routes(nil)...)},
	"stream":    {kind: front, uses: []use{configured, shares, streams, reads, seated, verifies, clients}, routes: stream.Routes(nil, nil)},
	"socket":    {kind: gate, uses: []use{configured, shares, reads, occupies, greets, verifies, clients}, wanted: hasSockets},
	"push":      {kind: crowd, uses: []use{configured, reads, pushes, clients}, wanted: hasSockets},
	"webhooks":  {kind: front, uses: []use{configured, shares, writes, lists, queues, clients}, routes: append(webhooks.Routes(nil), webhooks.ReplayRoutes(nil)...)},
	"deliver":   {kind: queue, uses: []use{configured, writes, queues, receives}},
	"admit":     {kind: step, uses: []use{configured, writes, lists, starts, completes, stops}},
	"constrain": {kind: step, uses: []use{configured, writes, lists, ofJobs, starts, completes, stops, valued}},
	"act":       {kind: step, uses: []use{configured, writes, lists, ofJobs, starts, completes, stops, valued}},
	"launch":    {kind: step, uses: []use{configured, writes, starts, completes, stops, machines, outputs, signs, valued, addressed}},
	"supervise": {kind: step, uses: []use{configured, writes, starts, completes, stops, machines, signs, addressed}},
	"terminate": {kind: step, uses: []use{configured, writes, starts, completes, stops, machines, outputs, valued}},
	"sweep":     {kind: sweep, uses: []use{configured, writes, lists, dues, surveys, starts, completes, stops, machines, outputs, signs, valued, addressed, wakes, dispatches}},
	"fire":      {kind: timer, uses: []use{configured, writes, starts, completes, wakes, deadLetter}},
	"canary":    {kind: probe, uses: []use{addressed, exports}, wanted: func(s Settings) bool { return s.CanaryPI != "" }},
	"relay":     {kind: relay, uses: []use{configured, addressed, consumes, publishes, writes, lists, dues, signs, signsEvents, queues, rouses, deadLetter, traced}},
}

// Program returns the folder of the function's program below functions. All step functions
// share one program, which selects its handler by SORTIE_STEP.
func Program(name string) string {
	if functions[name].kind == step {
		return "steps"
	}
	return name
}

// Programs returns the programs of all functions, sorted.
func Programs() []string {
	var programs []string
	for _, name := range Functions() {
		programs = append(programs, Program(name))
	}
	slices.Sort(programs)
	return slices.Compact(programs)
}

// Functions returns the names of all functions, sorted.
func Functions() []string { return slices.Sorted(maps.Keys(functions)) }

// Functions returns the names of the functions that the stage has, sorted.
func (s Settings) Functions() []string {
	return slices.DeleteFunc(Functions(), func(name string) bool {
		wanted := functions[name].wanted
		return wanted != nil && !wanted(s)
	})
}

// named returns the names of the functions of a kind, sorted.
func named(k kind) []string {
	var names []string
	for _, name := range Functions() {
		if functions[name].kind == k {
			names = append(names, name)
		}
	}
	return names
}

// timeout returns the timeout of a function in seconds.
func (s Settings) timeout(name string) int {
	if s.streamed(name) {
		return cmp.Or(streamTimeouts[name], streamTimeout)
	}
	if slices.Contains(hooks, name) {
		return hookTimeout
	}
	return timeouts[functions[name].kind]
}

// streamed reports whether the responses of a function are streamed.
func (s Settings) streamed(name string) bool {
	return s.Stream && slices.Contains(functions[name].uses, streams)
}

// memory returns the memory of a function in MB.
func (s Settings) memory(name string) int {
	if mb, ok := s.Memory[name]; ok {
		return mb
	}
	return cmp.Or(memories[name], defaultMemory)
}

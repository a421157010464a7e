package stack

import (
	"maps"
	"slices"

	"github.com/sortie-dev/sortie/functions/callback"
	"github.com/sortie-dev/sortie/functions/download"
	"github.com/sortie-dev/sortie/functions/export"
	"github.com/sortie-dev/sortie/functions/status"
	"github.com/sortie-dev/sortie/functions/tasks"
	"github.com/sortie-dev/sortie/shared/httpkit"
)

// kind is who calls a function.
type kind string

const (
	front kind = "front" // API Gateway
	step  kind = "step"  // the state machine
	sweep kind = "sweep" // the schedule, and executions that ended
	relay kind = "relay" // the table's stream
)

// timeouts are in seconds, each shorter than what its caller waits: API Gateway
// 29 s (15 min for a streamed answer), the schedule's minute. A step waits up to
// 10 s for a machine, and the effects of its commit may take 20 s.
var timeouts = map[kind]int{front: int(httpTimeout.Seconds()), step: 60, sweep: 55, relay: 30}

// streamTimeout is that of a streamed download: 8 MiB at 140 kB/s, which is a
// slow phone's; anything larger is fetched from the bucket.
const streamTimeout = 60

// use is one thing that a function needs: its variables and permissions stand
// in uses.go under that name.
type use string

const (
	configured use = "configured" // the settings of the service
	shares     use = "shares"     // answers with pages of other origins
	streams    use = "streams"    // answers as they are written
	versioned  use = "versioned"  // tells what is deployed
	reads      use = "reads"      // the table
	writes     use = "writes"     // the table
	lists      use = "lists"      // the table's runs by tenant
	surveys    use = "surveys"    // the table's runs by what is due
	starts     use = "starts"     // executions
	completes  use = "completes"  // the tokens of executions
	beats      use = "beats"      // those tokens' clocks
	stops      use = "stops"      // executions
	verifies   use = "verifies"   // public keys of tokens
	signs      use = "signs"      // tokens
	clients    use = "clients"    // the tokens of clients
	machines   use = "machines"   // the Machines API
	outputs    use = "outputs"    // the object store
	addressed  use = "addressed"  // the API's own URL
	publishes  use = "publishes"  // the bus
	consumes   use = "consumes"   // the table's stream
	loses      use = "loses"      // the queue of what could not be handled
)

// function is one Lambda function. Its metrics, its role and its log group have the
// same name.
type function struct {
	kind kind
	uses []use
	// routes are those of a front door.
	routes []httpkit.Route
}

// functions are all that is deployed, by name. The variables of each are held
// against what its bootstrap reads, by a test.
var functions = map[string]function{
	"export":    {front, []use{configured, shares, writes, starts, clients}, export.Routes(nil)},
	"callback":  {front, []use{configured, shares, writes, completes, beats, signs, outputs}, callback.Routes(nil)},
	"status":    {front, []use{configured, shares, reads, clients}, status.Routes(nil, status.MaxWait)},
	"download":  {front, []use{configured, shares, streams, writes, outputs, clients}, download.Routes(nil)},
	"tasks":     {front, []use{configured, shares, versioned, writes, lists, starts, completes, stops, machines, outputs, verifies, clients}, tasks.Routes(nil, "")},
	"admit":     {kind: step, uses: []use{configured, writes, completes, stops}},
	"constrain": {kind: step, uses: []use{configured, writes, completes, stops}},
	"act":       {kind: step, uses: []use{configured, writes, completes, stops}},
	"launch":    {kind: step, uses: []use{configured, writes, completes, stops, machines, outputs, signs, addressed}},
	"supervise": {kind: step, uses: []use{configured, writes, completes, stops, machines}},
	"terminate": {kind: step, uses: []use{configured, writes, completes, stops, machines, outputs}},
	"sweep":     {kind: sweep, uses: []use{configured, writes, lists, surveys, starts, completes, stops, machines, outputs, addressed, loses}},
	"relay":     {kind: relay, uses: []use{consumes, publishes, loses}},
}

// Program is the folder of the function's program below functions. All step
// functions share one, which selects its handler by SORTIE_STEP.
func Program(name string) string {
	if functions[name].kind == step {
		return "steps"
	}
	return name
}

// Programs lists the programs of all functions, sorted.
func Programs() []string {
	var programs []string
	for _, name := range Functions() {
		programs = append(programs, Program(name))
	}
	slices.Sort(programs)
	return slices.Compact(programs)
}

// Functions lists the names of all functions, sorted.
func Functions() []string { return slices.Sorted(maps.Keys(functions)) }

// named lists the functions of a kind, sorted.
func named(k kind) []string {
	var names []string
	for _, name := range Functions() {
		if functions[name].kind == k {
			names = append(names, name)
		}
	}
	return names
}

// timeout is the function's, in seconds.
func (s Settings) timeout(name string) int {
	if name == "download" && s.Stream {
		return streamTimeout
	}
	return timeouts[functions[name].kind]
}

// memory is the function's, in MB.
func (s Settings) memory(name string) int {
	if mb, told := s.Memory[name]; told {
		return mb
	}
	return defaultMemory
}

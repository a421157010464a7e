package asl

import (
	"encoding/json"
	"sort"

	"github.com/sortie-dev/sortie/local/twin/asl/document"
	"github.com/sortie-dev/sortie/local/twin/asl/intrinsic"
	"github.com/sortie-dev/sortie/local/twin/asl/path"
)

// Limits of Step Functions on definitions and their data.
const (
	MaxData       = 262_144   // bytes of an input, output or payload
	MaxEvents     = 25_000    // history events of an execution
	maxDefinition = 1_048_576 // bytes of a definition
	maxStateName  = 80        // characters
	maxSeconds    = 99_999_999
	maxDelay      = 31_622_400 // seconds between two tries
)

// Machine is a parsed definition. It is immutable and safe for concurrent use.
type Machine struct {
	graph
	timeoutSeconds int64 // 0: none
}

// graph is a set of states with a start: a machine, a branch of a Parallel or
// the processor of a Map.
type graph struct {
	startAt string
	states  map[string]*state
	order   []string // the names in the order of the definition
}

type kind string

const (
	kindPass     kind = "Pass"
	kindTask     kind = "Task"
	kindChoice   kind = "Choice"
	kindWait     kind = "Wait"
	kindSucceed  kind = "Succeed"
	kindFail     kind = "Fail"
	kindParallel kind = "Parallel"
	kindMap      kind = "Map"
)

// state is a state of any type. Fields of other types are zero.
type state struct {
	name string
	kind kind
	next string // "" ends the graph
	end  bool   // it has End

	inputPath, outputPath, resultPath field
	parameters, resultSelector        *template

	result    any // of a Pass
	hasResult bool

	resource           string
	callback           bool // .waitForTaskToken
	job                bool // .sync: the task has a token, and its own result also completes it
	timeout, heartbeat amount
	retry              []retrier
	catch              []catcher

	choices   []rule
	otherwise string // Default

	seconds       amount // of a Wait
	timestamp     string
	timestampPath *path.Path

	errorText, causeText *expression // of a Fail

	branches       []*graph // of a Parallel; one, the processor, of a Map
	itemsPath      field
	itemSelector   *template
	maxConcurrency amount
}

// field is a path that can be missing or null.
type field struct {
	set, null bool
	path      path.Path
}

// amount is a literal number or a path to one.
type amount struct {
	set   bool
	value int64
	path  *path.Path
}

// expression is a literal, a path or a call.
type expression struct {
	text    string
	literal any
	path    *path.Path
	call    *intrinsic.Call
}

type retrier struct {
	errors      []string
	interval    float64 // seconds
	maxAttempts int64
	backoff     float64
	maxDelay    float64 // seconds; 0: no limit
	jitter      bool
}

type catcher struct {
	errors     []string
	next       string
	resultPath field
}

// Parse parses a definition. The error is an *UnsupportedError for an
// unsupported part of the language, otherwise an *InvalidError with every
// mistake.
func Parse(definition []byte) (*Machine, error) {
	machine, all := parse(definition)
	found := all.list
	for _, p := range found {
		if p.Unsupported != "" {
			return nil, &UnsupportedError{Feature: p.Unsupported, Place: p.Place}
		}
	}
	if len(found) > 0 {
		return nil, &InvalidError{Problems: found}
	}
	return machine, nil
}

// Validate returns every mistake in a definition: those within states in the
// order of the states, and after each set of states those between them. Parse
// accepts a definition without mistakes.
func Validate(definition []byte) []Problem {
	_, found := parse(definition)
	return found.list
}

// Warnings returns the valid but probably unintended parts of a definition: states from which
// no terminal state is reachable.
func Warnings(definition []byte) []Problem {
	_, found := parse(definition)
	return found.warnings
}

// Resources returns the distinct resources of all Tasks, sorted.
func (m *Machine) Resources() []string {
	seen := map[string]bool{}
	m.walk(func(s *state) {
		if s.kind == kindTask {
			seen[s.resource] = true
		}
	})
	names := make([]string, 0, len(seen))
	for name := range seen {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// States returns the names of all states, including nested ones, in the order
// of the definition.
func (m *Machine) States() []string {
	var names []string
	m.walk(func(s *state) { names = append(names, s.name) })
	return names
}

func (g *graph) walk(visit func(*state)) {
	for _, name := range g.order {
		visit(g.states[name])
		for _, inner := range g.states[name].branches {
			inner.walk(visit)
		}
	}
}

// targets returns the names of all possible successors of s.
func (s *state) targets() []string {
	var names []string
	if s.next != "" {
		names = append(names, s.next)
	}
	if s.otherwise != "" {
		names = append(names, s.otherwise)
	}
	for _, r := range s.choices {
		names = append(names, r.next)
	}
	for _, c := range s.catch {
		names = append(names, c.next)
	}
	return names
}

// mayEnd reports whether the state can be the last one of its graph. A malformed state
// counts, because its own mistake is reported.
func (s *state) mayEnd() bool {
	switch s.kind {
	case kindSucceed, kindFail:
		return true
	case kindChoice:
		return false
	case kindPass, kindTask, kindWait, kindParallel, kindMap:
		return s.end || s.next == ""
	default:
		return true
	}
}

// integer parses a whole number.
func integer(value any) (int64, bool) {
	n, ok := value.(json.Number)
	if !ok {
		return 0, false
	}
	return document.Int(n)
}

package archtest

import (
	"go/ast"
	"go/token"
	"strconv"
	"strings"
	"testing"
	"time"
)

// leastWait is the shortest time for which a test waits on the wall clock for what happens. On a
// loaded host all takes longer. local/proof/await has the wait.
const leastWait = time.Minute

// shortWaits lists the files whose calls of context.WithTimeout may be shorter, with the reason.
var shortWaits = map[string]string{
	"local/proof/bench/heartbeats.go":               "the length of a measurement",
	"local/proof/bench/relays/world.go":             "virtual time",
	"local/proof/chaos/client.go":                   "a client that gives up calls and repeats them",
	"local/proof/localstack/server/server.go":       "one try of a question that is repeated",
	"local/sortie/client/task_test.go":              "virtual time",
	"local/twin/stack/inference_clients_test.go":    "clients that leave",
	"shared/adapter/engine/limits_test.go":          "the deadline is what is tested",
	"shared/adapter/engine/real_vllm_test.go":       "the deadline is what is tested",
	"shared/adapter/sqlite/feed_tail_test.go":       "the deadline is what is tested",
	"shared/app/hooks/calls_test.go":                "the deadline is what is tested",
	"shared/app/runs/claim_test.go":                 "the deadline is what is tested",
	"shared/wire/lambdakit/gateway/gateway_test.go": "the deadline is what is tested",
	"shared/wire/lambdakit/gateway/stream_test.go":  "the deadline is what is tested",
}

// TestWaitsAreLong checks that tests and their kits wait at least a minute for what happens.
func TestWaitsAreLong(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, s := range sources(t) {
		if !s.Test() && !strings.HasPrefix(s.Path, "local/proof/") {
			continue
		}
		consts := durations(s)
		ast.Inspect(s.File, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !isWithTimeout(call) || len(call.Args) != 2 {
				return true
			}
			limit, known := durationOf(call.Args[1], consts)
			if !known || limit >= leastWait {
				return true
			}
			if used[s.Path] = true; shortWaits[s.Path] == "" {
				t.Errorf("%s waits only %s: use local/proof/await, or at least %s, or say in shortWaits why", s.Line(call), limit, leastWait)
			}
			return true
		})
	}
	for file := range shortWaits {
		if !used[file] {
			t.Errorf("%s: got no short wait, want shortWaits without it", file)
		}
	}
}

func isWithTimeout(call *ast.CallExpr) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	of, _ := f.X.(*ast.Ident)
	return of != nil && of.Name == "context" && f.Sel.Name == "WithTimeout"
}

// durations returns the constants of a file that are durations.
func durations(s source) map[string]time.Duration {
	found := map[string]time.Duration{}
	ast.Inspect(s.File, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Names) != len(spec.Values) {
			return true
		}
		for i, name := range spec.Names {
			if d, ok := durationOf(spec.Values[i], found); ok {
				found[name.Name] = d
			}
		}
		return true
	})
	return found
}

// units are the units of package time.
var units = map[string]time.Duration{
	"Microsecond": time.Microsecond, "Millisecond": time.Millisecond, "Second": time.Second, "Minute": time.Minute, "Hour": time.Hour,
}

// durationOf returns the value of an expression of units, numbers and constants. An unknown factor
// counts as 1, an unknown summand as 0. It returns false without a unit.
func durationOf(e ast.Expr, consts map[string]time.Duration) (time.Duration, bool) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return durationOf(e.X, consts)
	case *ast.SelectorExpr:
		d, ok := units[e.Sel.Name]
		return d, ok
	case *ast.Ident:
		d, ok := consts[e.Name]
		return d, ok
	case *ast.BinaryExpr:
		x, isX := durationOf(e.X, consts)
		y, isY := durationOf(e.Y, consts)
		switch {
		case e.Op == token.ADD:
			return x + y, isX || isY
		case e.Op == token.MUL && isX:
			return time.Duration(int64(x) * factor(e.Y)), true
		case e.Op == token.MUL && isY:
			return time.Duration(int64(y) * factor(e.X)), true
		}
	}
	return 0, false
}

// factor returns the value of a whole number; 1 for other expressions.
func factor(e ast.Expr) int64 {
	literal, ok := e.(*ast.BasicLit)
	if !ok {
		return 1
	}
	n, err := strconv.ParseInt(literal.Value, 10, 64)
	if err != nil {
		return 1
	}
	return n
}

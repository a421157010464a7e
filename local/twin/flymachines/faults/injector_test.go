package faults_test

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/sortie-dev/sortie/local/twin/flymachines/faults"
)

func injector(t *testing.T, plan faults.Plan) *faults.Injector {
	t.Helper()
	i, err := faults.New(plan)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestRuleMatch(t *testing.T) {
	t.Parallel()
	subject := faults.Subject{
		App: "a", Name: "r-run-a1", Region: "ord",
		Metadata: map[string]string{"run_id": "run", "attempt": "1"}, Env: map[string]string{"TASK_ID": "t"},
	}
	for name, test := range map[string]struct {
		rule   faults.Rule
		action string
		want   bool
	}{
		"everyone":        {faults.Rule{Kind: faults.LostAnswer}, faults.Create, true},
		"other kind":      {faults.Rule{Kind: faults.BadGateway}, faults.Create, false},
		"other action":    {faults.Rule{Kind: faults.LostAnswer}, faults.Stop, false},
		"its action":      {faults.Rule{Kind: faults.LostAnswer, Action: faults.Stop}, faults.Stop, true},
		"app":             {faults.Rule{Kind: faults.LostAnswer, App: "a"}, faults.Create, true},
		"other app":       {faults.Rule{Kind: faults.LostAnswer, App: "b"}, faults.Create, false},
		"pattern":         {faults.Rule{Kind: faults.LostAnswer, Name: "r-*-a1"}, faults.Create, true},
		"other pattern":   {faults.Rule{Kind: faults.LostAnswer, Name: "r-*-a2"}, faults.Create, false},
		"metadata":        {faults.Rule{Kind: faults.LostAnswer, Metadata: map[string]string{"attempt": "1"}}, faults.Create, true},
		"other metadata":  {faults.Rule{Kind: faults.LostAnswer, Metadata: map[string]string{"attempt": "2"}}, faults.Create, false},
		"no such env":     {faults.Rule{Kind: faults.LostAnswer, Env: map[string]string{"X": ""}}, faults.Create, false},
		"env":             {faults.Rule{Kind: faults.LostAnswer, Env: map[string]string{"TASK_ID": "t"}}, faults.Create, true},
		"one of two fits": {faults.Rule{Kind: faults.LostAnswer, App: "a", Region: "fra"}, faults.Create, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := injector(t, faults.Plan{Rules: []faults.Rule{test.rule}})
			if _, got := i.Inject(faults.LostAnswer, test.action, subject); got != test.want {
				t.Errorf("injected: got %v, want %v", got, test.want)
			}
		})
	}
}

func TestTimesCountsPerSubject(t *testing.T) {
	t.Parallel()
	i := injector(t, faults.Plan{Rules: []faults.Rule{{Kind: faults.BadGateway, Times: 2}}})
	for _, name := range []string{"x", "y"} {
		var got []bool
		for range 4 {
			_, injected := i.Inject(faults.BadGateway, faults.Create, faults.Subject{App: "a", Name: name})
			got = append(got, injected)
		}
		if fmt.Sprint(got) != "[true true false false]" {
			t.Errorf("%s: got %v, want two injections", name, got)
		}
	}
}

func TestSeedDecidesInAnyOrder(t *testing.T) {
	t.Parallel()
	const machines = 2000
	strikes := func(seed uint64, reverse bool) [machines]bool {
		i := injector(t, faults.Plan{Seed: seed, Rules: []faults.Rule{{Kind: faults.LostAnswer, Rate: 0.25}}})
		var injected [machines]bool
		var group sync.WaitGroup
		for n := range machines {
			if reverse {
				n = machines - 1 - n
			}
			group.Go(func() {
				_, injected[n] = i.Inject(faults.LostAnswer, faults.Create, faults.Subject{App: "a", Name: fmt.Sprint("m", n)})
			})
		}
		group.Wait()
		return injected
	}
	first := strikes(7, false)
	if strikes(7, true) != first {
		t.Error("same seed: got other subjects, want the same")
	}
	if strikes(8, false) == first {
		t.Error("another seed: got the same subjects, want others")
	}
	count := 0.0
	for _, injected := range first {
		if injected {
			count++
		}
	}
	if math.Abs(count/machines-0.25) > 0.05 {
		t.Errorf("injected %v of %d, want a quarter", count, machines)
	}
}

func TestCapacityVariants(t *testing.T) {
	t.Parallel()
	i := injector(t, faults.Plan{Rules: []faults.Rule{{Kind: faults.Capacity}}})
	seen := map[string]bool{}
	for n := range 200 {
		rule, _ := i.Inject(faults.Capacity, faults.Create, faults.Subject{Name: fmt.Sprint(n)})
		seen[rule.Variant] = true
	}
	if len(seen) != len(faults.Variants()) {
		t.Errorf("got variants %v, want all of %v", seen, faults.Variants())
	}
}

func TestPlanValidation(t *testing.T) {
	t.Parallel()
	for want, rule := range map[string]faults.Rule{
		`kind "boom" is unknown`:          {Kind: "boom"},
		`action "fly" is unknown`:         {Kind: faults.Slow, For: 1, Action: "fly"},
		`does not apply to action "stop"`: {Kind: faults.OOM, Action: faults.Stop},
		`needs an action`:                 {Kind: faults.Leased},
		`does not apply to action "list"`: {Kind: faults.Changed, Action: faults.List},
		`is not a pattern`:                {Kind: faults.OOM, Name: "["},
		`times is -1`:                     {Kind: faults.OOM, Times: -1},
		`rate is 2`:                       {Kind: faults.OOM, Rate: 2},
		`rate is NaN`:                     {Kind: faults.OOM, Rate: math.NaN()},
		`for is 0s`:                       {Kind: faults.Invisible},
		`variant "memory" does not fit`:   {Kind: faults.Slow, For: 1, Variant: "memory"},
	} {
		_, err := faults.New(faults.Plan{Rules: []faults.Rule{{Kind: faults.LostExit}, rule}})
		if err == nil || !strings.Contains(err.Error(), "rules[1]: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

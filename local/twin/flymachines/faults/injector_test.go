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

func TestWhomARuleStrikes(t *testing.T) {
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
			if _, got := i.Strike(faults.LostAnswer, test.action, subject); got != test.want {
				t.Errorf("struck = %v, want %v", got, test.want)
			}
		})
	}
}

func TestTimesCountsForEachSubject(t *testing.T) {
	t.Parallel()
	i := injector(t, faults.Plan{Rules: []faults.Rule{{Kind: faults.BadGateway, Times: 2}}})
	for _, name := range []string{"x", "y"} {
		var got []bool
		for range 4 {
			_, struck := i.Strike(faults.BadGateway, faults.Create, faults.Subject{App: "a", Name: name})
			got = append(got, struck)
		}
		if fmt.Sprint(got) != "[true true false false]" {
			t.Errorf("%s: struck %v, want twice", name, got)
		}
	}
}

func TestASeedDecidesWhateverTheOrder(t *testing.T) {
	t.Parallel()
	const machines = 2000
	strikes := func(seed uint64, reverse bool) [machines]bool {
		i := injector(t, faults.Plan{Seed: seed, Rules: []faults.Rule{{Kind: faults.LostAnswer, Rate: 0.25}}})
		var struck [machines]bool
		var group sync.WaitGroup
		for n := range machines {
			if reverse {
				n = machines - 1 - n
			}
			group.Go(func() {
				_, struck[n] = i.Strike(faults.LostAnswer, faults.Create, faults.Subject{App: "a", Name: fmt.Sprint("m", n)})
			})
		}
		group.Wait()
		return struck
	}
	first := strikes(7, false)
	if strikes(7, true) != first {
		t.Error("the same seed struck others")
	}
	if strikes(8, false) == first {
		t.Error("another seed struck the same")
	}
	count := 0.0
	for _, struck := range first {
		if struck {
			count++
		}
	}
	if math.Abs(count/machines-0.25) > 0.05 {
		t.Errorf("struck %v of %d, want a quarter", count, machines)
	}
}

func TestCapacityTakesAWayOfFly(t *testing.T) {
	t.Parallel()
	i := injector(t, faults.Plan{Rules: []faults.Rule{{Kind: faults.Capacity}}})
	seen := map[string]bool{}
	for n := range 200 {
		rule, _ := i.Strike(faults.Capacity, faults.Create, faults.Subject{Name: fmt.Sprint(n)})
		seen[rule.Variant] = true
	}
	if len(seen) != len(faults.Variants()) {
		t.Errorf("ways seen: %v, want all of %v", seen, faults.Variants())
	}
}

func TestMistakesInAPlanAreNamed(t *testing.T) {
	t.Parallel()
	for want, rule := range map[string]faults.Rule{
		`kind "boom" is unknown`:        {Kind: "boom"},
		`action "fly" is unknown`:       {Kind: faults.Slow, For: 1, Action: "fly"},
		`does not strike action "stop"`: {Kind: faults.OOM, Action: faults.Stop},
		`is not a pattern`:              {Kind: faults.OOM, Name: "["},
		`times is -1`:                   {Kind: faults.OOM, Times: -1},
		`rate is 2`:                     {Kind: faults.OOM, Rate: 2},
		`rate is NaN`:                   {Kind: faults.OOM, Rate: math.NaN()},
		`for is 0s`:                     {Kind: faults.Invisible},
		`variant "memory" does not fit`: {Kind: faults.Slow, For: 1, Variant: "memory"},
	} {
		_, err := faults.New(faults.Plan{Rules: []faults.Rule{{Kind: faults.LostExit}, rule}})
		if err == nil || !strings.Contains(err.Error(), "rules[1]: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("err = %v, want %q", err, want)
		}
	}
}

package answers_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/answers"
	"github.com/sortie-dev/sortie/local/proof/simulation/seeds"
	"github.com/sortie-dev/sortie/shared/domain/routing"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

var flags = seeds.Define(20)

func TestMain(m *testing.M) { seeds.Main(m) }

// play runs the simulation of one seed.
func play(t *testing.T, seed uint64) (o answers.Outcome) {
	t.Helper()
	t.Run(fmt.Sprint(seed), func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var err error
			if o, err = answers.Run(t.Context(), seed, synctest.Wait); err != nil {
				t.Error(err)
			}
		})
	})
	return o
}

// TestInvariants runs one simulation per seed.
func TestInvariants(t *testing.T) {
	t.Parallel()
	all, ends, copies := answers.Outcome{}, map[run.State]int{}, map[routing.ShadowOutcome]int{}
	rate := seeds.Each(t, flags, "local/proof/simulation/answers", func(seed uint64) seeds.Outcome {
		o := play(t, seed)
		return seeds.Outcome{Problems: o.Problems, Trace: o.Trace, Add: func() {
			all.Tasks, all.Refused, all.Attempts, all.Events = all.Tasks+o.Tasks, all.Refused+o.Refused, all.Attempts+o.Attempts, all.Events+o.Events
			all.Connections, all.Tokens, all.Cancels, all.Kills = all.Connections+o.Connections, all.Tokens+o.Tokens, all.Cancels+o.Cancels, all.Kills+o.Kills
			all.Fallbacks, all.Calls, all.Reasoned = all.Fallbacks+o.Fallbacks, all.Calls+o.Calls, all.Reasoned+o.Reasoned
			all.Several, all.Large, all.Deleted = all.Several+o.Several, all.Large+o.Large, all.Deleted+o.Deleted
			all.Requests, all.Kept, all.Took = all.Requests+o.Requests, all.Kept+o.Kept, all.Took+o.Took
			all.Splits, all.Long, all.Expired = all.Splits+o.Splits, all.Long+o.Long, all.Expired+o.Expired
			for state, n := range o.Ends {
				ends[state] += n
			}
			for outcome, n := range o.Copies {
				copies[outcome] += n
			}
		}}
	})
	if *flags.Count >= 20 && (ends[run.Completed]*4 < all.Tasks || ends[run.Cancelled] == 0 || ends[run.Failed] == 0) {
		t.Errorf("got the ends %v of %d tasks, want a quarter Completed, and some of each other state", ends, all.Tasks)
	}
	if *flags.Count >= 20 && (all.Fallbacks == 0 || all.Calls == 0 || all.Reasoned == 0) {
		t.Errorf("got %d fallbacks, %d calls of tools and %d answers with reasoning, want some of each", all.Fallbacks, all.Calls, all.Reasoned)
	}
	if *flags.Count >= 20 && (all.Several == 0 || all.Large == 0 || all.Deleted == 0) {
		t.Errorf("got %d further answers, %d large requests and %d deleted answers, want some of each", all.Several, all.Large, all.Deleted)
	}
	if *flags.Count >= 20 && (all.Splits == 0 || all.Long == 0 || all.Expired == 0 || len(copies) < 3) {
		t.Errorf("got %d tasks of a split, %d with a long prompt, %d deleted after their days and the copies %v, want some of each", all.Splits, all.Long, all.Expired, copies)
	}
	t.Logf("%d seeds, %.1f per second, %s simulated: %d tasks in %d attempts with %d requests to engines, %d refused; %d cancels; %d processes killed; "+
		"%d events on %d connections; %d tokens spent; %d requests kept by engines; %d fallbacks, %d splits, %d long prompts, copies %v; %d calls, %d with reasoning; ends: %v",
		*flags.Count, rate, all.Took.Round(time.Minute), all.Tasks, all.Attempts, all.Requests, all.Refused, all.Cancels, all.Kills, all.Events, all.Connections, all.Tokens, all.Kept, all.Fallbacks, all.Splits, all.Long, copies, all.Calls, all.Reasoned, ends)
}

package inferences_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// four are the options of a task with four answers of five tokens each.
func four(in *inferences.NewTask) { in.Request.Choices = 4 }

// paced gives each token of the engine r1 a time.
func paced(slots int, every time.Duration, plan func(port.Generation) mockengine.Course) func(*inferring) {
	return func(h *inferring) {
		h.engines["r1"] = mockengine.New(mockengine.Config{Clock: h.clock, Slots: slots, TokenEvery: every, Plan: plan})
	}
}

// textOf returns the tokens of the answers of a stream, without the rest.
func textOf(events []inference.Event) string {
	var b strings.Builder
	for _, e := range events {
		switch data := e.Data.(type) {
		case inference.Token:
			b.WriteString(data.T)
		case *inference.ChoiceEnd:
			b.WriteString("|" + data.Finish + "\n")
		}
	}
	return b.String()
}

// TestAnswersAtTheSameTime compares the time and the stream of four answers in the slots that a
// replica has.
func TestAnswersAtTheSameTime(t *testing.T) {
	t.Parallel()
	const token, slack = time.Second, 2 * time.Second
	var first string
	for _, row := range []struct {
		slots int
		most  time.Duration
	}{{1, 20*token + slack}, {2, 10*token + slack}, {4, 5*token + slack}, {8, 5*token + slack}} {
		synctest.Test(t, func(t *testing.T) {
			h := newInferring(t, 1, row.slots, paced(row.slots, token, nil))
			task := h.ask(5, four)
			h.steps(row.most, func() bool { return h.stored(task).State.Terminal() })
			events := h.read(task, inference.EventID{})
			if got := names(events); strings.ReplaceAll(got, "m", "") != "s"+strings.Repeat("tttttc", 3)+"ttttt"+"e" {
				t.Errorf("%d slots: got the events %q", row.slots, got)
			}
			if first == "" {
				first = textOf(events)
			}
			if got := textOf(events); got != first {
				t.Errorf("%d slots: got\n%s\nwant as with one slot\n%s", row.slots, got, first)
			}
			r := h.stored(task)
			if r.State != run.Completed || r.Generation.TokensOut != 20 || r.Generation.TokensIn != 4 {
				t.Errorf("%d slots: got %s with %+v, want 20 tokens for a prompt of 4", row.slots, r.State, r.Generation)
			}
			h.stop()
		})
	}
}

// TestAnswersLeaveSlotsToOtherTasks asks for four answers in two slots. Another task gets one of the
// slots once the answer in it has ended.
func TestAnswersLeaveSlotsToOtherTasks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newInferring(t, 1, 2, paced(2, time.Second, nil))
		task := h.ask(5, four)
		h.steps(2*time.Second, func() bool { return h.stored(task).State == run.Running })
		other := h.ask(5)
		h.steps(12*time.Second, func() bool { return h.stored(other).State.Terminal() })
		if r := h.stored(task); r.State != run.Running {
			t.Errorf("got %s, want the other task before the third of four answers", r.State)
		}
		h.steps(30*time.Second, func() bool { return h.stored(task).State.Terminal() })
		for _, id := range []string{task, other} {
			if r := h.stored(id); r.State != run.Completed {
				t.Errorf("got %s with %v, want Completed", r.State, r.Fault)
			}
		}
		h.stop()
	})
}

// TestFailureOfALaterAnswer fails the request for a later answer before its turn. It is requested again.
func TestFailureOfALaterAnswer(t *testing.T) {
	t.Parallel()
	for _, how := range []mockengine.Failure{mockengine.FailReset, mockengine.FailError, mockengine.FailBusy, mockengine.FailStart} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			plan := func(port.Generation) mockengine.Course {
				if asked++; asked == 3 {
					return mockengine.Course{Failure: how, After: 2, Every: time.Second}
				}
				return mockengine.Course{Every: time.Second}
			}
			h := newInferring(t, 1, 4, paced(4, 0, plan))
			task := h.ask(5, four)
			h.steps(time.Minute, func() bool { return h.stored(task).State.Terminal() })
			got, r := strings.ReplaceAll(names(h.read(task, inference.EventID{})), "m", ""), h.stored(task)
			if asked != 5 || got != "s"+strings.Repeat("tttttc", 3)+"ttttte" || r.State != run.Completed || r.Generation.TokensOut != 20 {
				// The third request may be that of the first answer, which is then not repeated.
				if r.Fault == nil || r.Fault.Code != fault.WorkerReset {
					t.Errorf("%s: got %s (%v) with %q after %d requests, want four answers after five", how, r.State, r.Fault, got, asked)
				}
			}
			h.stop()
		})
	}
}

// TestCrashAmongSeveralAnswers restarts the dispatcher before the first token, and within a later answer.
// The stream has each answer once, or ends with an error.
func TestCrashAmongSeveralAnswers(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		tokens int // sent before the crash
		want   string
	}{
		"before the first token":   {0, "s" + strings.Repeat("tttttc", 3) + "ttttte"},
		"within the first answer":  {3, "stttx"},
		"within the second answer": {7, "stttttcttx"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newInferring(t, 1, 1, paced(1, time.Second, nil))
				task := h.ask(5, four)
				h.steps(time.Minute, func() bool {
					synctest.Wait()
					return h.stored(task).State == run.Running && h.clock.Now().Sub(epoch) >= time.Duration(row.tokens)*time.Second+500*time.Millisecond
				})
				h.restart()
				ref, swept := h.stored(task).Ref(), make(chan error, 1)
				go func() { swept <- h.sweeper.Advance(t.Context(), ref) }()
				h.steps(10*time.Minute, func() bool { return h.stored(task).State.Terminal() })
				h.ok(<-swept)
				got := strings.ReplaceAll(names(h.read(task, inference.EventID{})), "m", "")
				if r := h.stored(task); r.State != run.Completed {
					got = got[:len(got)-1] + "x"
				}
				if got != row.want {
					t.Errorf("got the events %q, want %q", got, row.want)
				}
				h.stop()
			})
		})
	}
}

// TestNothingIsWrittenAfterADeletion deletes an answer while an engine generates it. The dispatcher, which
// ends the attempt after that, leaves no record in the stream.
func TestNothingIsWrittenAfterADeletion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newInferring(t, 1, 1, paced(1, time.Second, func(port.Generation) mockengine.Course {
			return mockengine.Course{Every: time.Second, Keeps: 3 * time.Second}
		}))
		task := h.ask(20)
		h.steps(10*time.Second, func() bool { return h.clock.Now().Sub(epoch) >= 3*time.Second })
		h.ok(h.tasks.Discard(t.Context(), client, task))
		h.steps(time.Minute, func() bool { return h.stored(task).AnswerDeleted })
		h.steps(time.Minute, func() bool { return h.clock.Now().Sub(epoch) >= 30*time.Second })
		head, err := h.feed.Head(t.Context(), inference.StreamOf(client.Tenant, task))
		if err != nil || head.Newest > 0 {
			t.Errorf("got a stream of %d records (%v), want none", head.Newest, err)
		}
		h.stop()
	})
}

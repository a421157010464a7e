package inferences_test

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"runtime/pprof"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/port"
)

// goroutinesOf counts the goroutines with a label. A goroutine has the labels of the one that
// started it.
func goroutinesOf(t *testing.T, label string) (count int) {
	t.Helper()
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile(`(?m)^(\d+) @.*\n# labels: \{"streams":"`+label+`"\}$`).FindAllSubmatch(profile.Bytes(), -1) {
		n, err := strconv.Atoi(string(found[1]))
		if err != nil {
			t.Fatal(err)
		}
		count += n
	}
	return count
}

// TestOpenStreamHasTwoGoroutines: one waits for the engine and one for the stream. The
// connections to the engine and of the reader have their own.
func TestOpenStreamHasTwoGoroutines(t *testing.T) {
	t.Parallel()
	const streams, readers = 20, 4 // the store starts up to four goroutines that read the file
	h := newInferring(t, 1, streams)
	for range streams {
		h.engines["r1"].FailNext(mockengine.FailStall, 1)
	}
	ctx, leave := context.WithCancel(t.Context())
	var calls, waiting sync.WaitGroup
	waiting.Add(streams)
	pprof.Do(ctx, pprof.Labels("streams", t.Name()), func(ctx context.Context) {
		for i := range streams {
			calls.Go(func() {
				in := inferences.NewTask{
					Identity: client, Model: "mock", Workload: port.WorkloadCompletion,
					Request: inference.Request{Prompt: fmt.Sprint(i)}, MaxTokens: 3,
				}
				first := sync.OnceFunc(waiting.Done)
				err := h.tasks.Call(ctx, &in, func(inferences.Accepted) error { return nil }, func(events []inference.Event) error {
					if slices.ContainsFunc(events, func(e inference.Event) bool { return e.Name == inference.NameToken }) {
						first() // nothing follows but metrics
					}
					return nil
				})
				if first(); ctx.Err() == nil {
					t.Errorf("got %v before the caller has left", err)
				}
			})
		}
	})
	waiting.Wait()
	h.engines["r1"].WaitRunning(streams)
	const most = 2*streams + readers
	var got int
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for range 24_000 {
		h.clock.Advance(5 * time.Millisecond) // the metrics are appended, and their goroutines end
		if got = goroutinesOf(t, t.Name()); got <= most {
			break
		}
		<-look.C
	}
	if got > most || got < streams {
		t.Errorf("got %d goroutines for %d streams that wait, want at most %d", got, streams, most)
	}
	leave()
	calls.Wait()
}

//go:build localstack

package acceptance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/contract"
)

// kills strikes processes of functions, whatever they do, at random moments
// while a hundred runs are on their way.
func (w *world) kills(t *testing.T) {
	const runs, clients, blows = 100, 20, 100
	first := patient{w, "kills.first"} // there are processes once something was called
	task, err := first.begin(t.Context(), "kills-first")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.end(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	if pids, err := w.server.Functions(t.Context()); err != nil || len(pids) == 0 {
		t.Fatalf("no process of a function is seen, where they would be with LOCALSTACK=python: %v", err)
	}
	seed := rand.Uint64()
	ctx, stop := context.WithCancel(t.Context())
	struck := make(chan int)
	go func() { struck <- w.strike(ctx, blows, rand.New(rand.NewPCG(seed, 0))) }()
	var next sync.Mutex
	begun, ends := 0, make([]contract.Status, runs)
	together(clients, func(int) {
		client := patient{w, "kills"}
		for {
			next.Lock()
			i := begun
			begun++
			next.Unlock()
			if i >= runs {
				return
			}
			task, err := client.begin(t.Context(), fmt.Sprintf("kills-%x-%d", seed, i))
			if err != nil {
				t.Error(err)
				return
			}
			if ends[i], err = client.end(t.Context(), task); err != nil {
				t.Error(err)
			}
		}
	})
	stop()
	seen := map[string]bool{}
	for _, status := range ends {
		if seen[status.TaskID] {
			t.Errorf("two requests were one run: %s", status.TaskID)
		}
		seen[status.TaskID] = true
		w.wellEnded(t, status)
	}
	t.Logf("%d processes were killed; seed %d", <-struck, seed)
}

// The pauses between two blows.
const leastPause, mostPause = 100 * time.Millisecond, 600 * time.Millisecond

// strike kills so many processes, or fewer where ctx ends before, and counts
// them.
func (w *world) strike(ctx context.Context, blows int, random *rand.Rand) int {
	count := 0
	for count < blows {
		select {
		case <-ctx.Done():
			return count
		case <-time.After(leastPause + time.Duration(random.Int64N(int64(mostPause-leastPause)))):
		}
		pids, err := w.server.Functions(ctx)
		if err != nil || len(pids) == 0 {
			continue
		}
		process, err := os.FindProcess(pids[random.IntN(len(pids))])
		if err == nil && process.Signal(syscall.SIGKILL) == nil {
			count++
		}
	}
	return count
}

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

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// kills kills processes of functions at random times during a hundred runs.
func (w *world) kills(t *testing.T) {
	const runs, clients, most = 100, 20, 100
	first := patient{w, "kills.first"} // a function has a process after its first call
	task, err := first.begin(t.Context(), "kills-first")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.end(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	if pids, err := w.server.Functions(t.Context()); err != nil || len(pids) == 0 {
		t.Fatalf("found no process of a function, want some with LOCALSTACK=python: %v", err)
	}
	seed := rand.Uint64()
	ctx, stop := context.WithCancel(t.Context())
	killed := make(chan int)
	go func() { killed <- w.inject(ctx, most, rand.New(rand.NewPCG(seed, 0))) }()
	var next sync.Mutex
	started, ends := 0, make([]contract.Status, runs)
	together(clients, func(int) {
		client := patient{w, "kills"}
		for {
			next.Lock()
			i := started
			started++
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
			t.Errorf("got run %s for two requests", status.TaskID)
		}
		seen[status.TaskID] = true
		w.wellEnded(t, status)
	}
	t.Logf("killed %d processes; seed %d", <-killed, seed)
}

// The limits of the pause between two kills.
const leastPause, mostPause = 100 * time.Millisecond, 600 * time.Millisecond

// inject kills most processes one after another, or fewer if ctx ends first. It returns their
// number.
func (w *world) inject(ctx context.Context, most int, random *rand.Rand) int {
	count := 0
	for count < most {
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

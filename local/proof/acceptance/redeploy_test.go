//go:build localstack

package acceptance

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/suite/scripts"
)

// redeploys replaces the code and environment of every function during runs with active
// workers, while a client submits more runs.
func (w *world) redeploys(t *testing.T) {
	const held, pause = 6, time.Second
	hold := scripts.Pipe(t)
	client := patient{w, "redeploy.held"}
	w.target.Scripts.Set(t, client.batch, "wait:"+hold+" success")
	tasks := make([]string, held)
	together(held, func(i int) {
		var err error
		if tasks[i], err = client.begin(t.Context(), fmt.Sprint("held-", i)); err != nil {
			t.Error(err)
		}
	})
	deployed := make(chan struct{})
	var fresh []string
	var meanwhile sync.WaitGroup
	meanwhile.Go(func() {
		other := patient{w, "redeploy.fresh"}
		for i := 0; ; i++ {
			select {
			case <-deployed:
				return
			default:
			}
			task, err := other.begin(t.Context(), fmt.Sprint("fresh-", i))
			if err != nil {
				t.Error(err)
				return
			}
			fresh = append(fresh, task)
			if _, err := other.end(t.Context(), task); err != nil {
				t.Error(err)
			}
			select {
			case <-deployed:
			case <-time.After(pause):
			}
		}
	})
	settings := []string{"deploy", "--release", Release, "--setting", "SORTIE_RETRY_DELAY=2s"}
	for name, value := range Settings() {
		if name != "SORTIE_RETRY_DELAY" {
			settings = append(settings, "--setting", name+"="+value)
		}
	}
	command := exec.CommandContext(t.Context(), w.program, settings...)
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, &said
	err := command.Run()
	close(deployed)
	meanwhile.Wait()
	if err != nil {
		t.Fatalf("%v: %s", err, said.Bytes())
	}
	if !strings.Contains(said.String(), w.target.URL) {
		t.Errorf("second deployment: got another URL %s", said.Bytes())
	}
	scripts.Release(t, hold)
	together(held, func(i int) {
		status, err := client.end(t.Context(), tasks[i])
		if err != nil {
			t.Error(err)
			return
		}
		if status.Attempt != 1 {
			t.Errorf("%s: got %d attempts, want 1", status.TaskID, status.Attempt)
		}
		w.wellEnded(t, status)
	})
	for _, task := range fresh {
		status, err := client.end(t.Context(), task)
		if err != nil {
			t.Fatal(err)
		}
		w.wellEnded(t, status)
	}
	t.Logf("%d runs were active during the deployment, %d were submitted meanwhile; %s", held, len(fresh), strings.Join(strings.Fields(said.String()), " "))
}

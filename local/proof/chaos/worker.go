package chaos

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/sortie-dev/sortie/functions/worker"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// workerProgram is the name under which a test binary registers Worker.
const workerProgram = "chaos-worker"

// Worker returns the program of the machines. BATCH_ID selects one: a worker that only makes
// the callback, the command in words, or the export worker with that kind of collection.
func Worker(clock clock.Clock) func(words []string, env map[string]string) int {
	return func(words []string, env map[string]string) int {
		if length, err := time.ParseDuration(env[jobWork]); err == nil {
			done, _ := clock.NewTimer(length)
			<-done
			return 0
		}
		if env["BATCH_ID"] == kindTiny {
			return callBack(env, clock)
		}
		environ := make([]string, 0, len(env))
		for name, value := range env {
			if name == "SOURCE_API_URL" && strings.HasSuffix(value, collections) {
				value += "/" + env["BATCH_ID"]
			}
			environ = append(environ, name+"="+value)
		}
		slices.Sort(environ)
		if env["BATCH_ID"] == kindForeign {
			return execCommand(words, environ)
		}
		return worker.Main(context.Background(), environ, os.Stderr)
	}
}

// execCommand replaces this process by the command, so that faults hit the command itself.
func execCommand(words, environ []string) int {
	if len(words) == 0 {
		fmt.Fprintln(os.Stderr, "missing command of the foreign worker")
		return 1
	}
	err := syscall.Exec(words[0], words, environ) //nolint:gosec // it is what the test asks to run
	fmt.Fprintln(os.Stderr, "cannot start the foreign worker:", err)
	return 1
}

// callBackPause is the delay between two attempts of a callback.
const callBackPause = 50 * time.Millisecond

// callBack repeats the callback until the server answers. It returns 0 after a 200, 1 after a
// refusal, and 143 after SIGTERM.
func callBack(env map[string]string, clock clock.Clock) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	for {
		body := strings.NewReader(fmt.Sprintf(`{"task_id":%q,"status":"success"}`, env["TASK_ID"]))
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, env["CALLBACK_URL"], body)
		if err != nil {
			return 1
		}
		request.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(request)
		if err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return 0
			}
			if answer.StatusCode < http.StatusInternalServerError {
				fmt.Fprintln(os.Stderr, "callback refused:", answer.Status)
				return 1
			}
		}
		again, _ := clock.NewTimer(callBackPause)
		select {
		case <-again:
		case <-ctx.Done():
			return 128 + int(syscall.SIGTERM)
		}
	}
}

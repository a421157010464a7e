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

	"github.com/sortie-dev/sortie/functions/worker/program"
	"github.com/sortie-dev/sortie/shared/clock"
)

// workerProgram is the name of the program that Worker makes.
const workerProgram = "chaos-worker"

// Worker is the program of the machines here: by BATCH_ID it is a worker that
// only calls back, the command that its words are, or the export worker on the
// collection of that kind.
func Worker(clock clock.Clock) func(words []string, env map[string]string) int {
	return func(words []string, env map[string]string) int {
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
			return become(words, environ)
		}
		return program.Main(context.Background(), environ, os.Stderr)
	}
}

// become puts a command into the place of this process, so that what is struck
// is the command.
func become(words, environ []string) int {
	if len(words) == 0 {
		fmt.Fprintln(os.Stderr, "there is no foreign worker")
		return 1
	}
	err := syscall.Exec(words[0], words, environ) //nolint:gosec // it is what the test asks to run
	fmt.Fprintln(os.Stderr, "the foreign worker does not start:", err)
	return 1
}

// callBackPause is between two tries of a worker that only calls back.
const callBackPause = 50 * time.Millisecond

// callBack calls until it is answered by who knows the task: 0 where that is
// 200, 1 otherwise, 143 where somebody asks it to stop.
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
				fmt.Fprintln(os.Stderr, "the callback was refused:", answer.Status)
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

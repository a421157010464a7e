package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// requestPause is the longest pause before a client's next request. retryPause is the pause
// before a failed call is retried.
const (
	requestPause = 200 * time.Millisecond
	retryPause   = 40 * time.Millisecond
	// callLimit is the timeout of one call.
	callLimit = 15 * time.Second
)

// client starts runs in sequence until all faults are injected, and follows each run to its
// end.
func (w *world) client(ctx context.Context, number uint64) {
	random := w.random(number + 100)
	for n := 0; ctx.Err() == nil; n++ {
		if !w.wait(ctx, time.Duration(random.Int64N(int64(requestPause)))) {
			return
		}
		select {
		case <-w.allInjected:
			if n > 0 {
				return
			}
		default:
		}
		o := w.workloads[random.IntN(len(w.workloads))]
		key := fmt.Sprintf("client %d, request %d", number, n)
		// The transport also retries a POST, so the first answer may be a 200.
		task, ok := w.accept(ctx, o, key, http.StatusAccepted, http.StatusOK)
		if !ok {
			return
		}
		w.note("%s is %s", task, o)
		w.mu.Lock()
		if before, known := w.accepted[task]; known {
			w.outcome.Problems = append(w.outcome.Problems, fmt.Sprintf("%s was returned for two keys, %s and %s", task, before, o))
		}
		w.accepted[task] = o
		w.mu.Unlock()
		w.await(ctx, o, key, task, random)
	}
}

// accept repeats the POST until it is answered, which must be with one of the wanted statuses.
// It returns the task.
func (w *world) accept(ctx context.Context, o workload, key string, want ...int) (task string, ok bool) {
	for {
		status, text, err := w.call(ctx, http.MethodPost, "/export/"+o.format, o.body, "Idempotency-Key", key)
		var answer contract.ExportAccepted
		switch {
		case err != nil || status >= http.StatusInternalServerError:
			w.mu.Lock()
			w.outcome.Repeats++
			w.mu.Unlock()
			if !w.wait(ctx, retryPause) {
				return "", false
			}
			continue
		case !slices.Contains(want, status):
			w.fail("POST %s: got %d %.300s, want %v", o, status, text, want)
			return "", false
		case json.Unmarshal(text, &answer) != nil || answer.TaskID == "":
			w.fail("POST %s: got %.300s, want a task id", o, text)
			return "", false
		}
		return answer.TaskID, true
	}
}

// await follows a task to its end and checks its output. In one of three cases it first repeats
// the POST.
func (w *world) await(ctx context.Context, o workload, key, task string, random *rand.Rand) {
	if random.IntN(3) == 0 {
		if again, ok := w.accept(ctx, o, key, http.StatusOK); ok && again != task {
			w.fail("repeated key of %s: got %s", task, again)
		}
	}
	status, ok := w.follow(ctx, task)
	if !ok {
		return
	}
	succeeded, allowed := w.endsAs(task, status.State, status.ErrorCode)
	if !allowed {
		w.fail("%s, %s, ended as %s in attempt %d: %s: %s", task, o, status.State, status.Attempt, status.ErrorCode, status.Error)
		return
	}
	if succeeded && o.hasOutput() {
		w.download(ctx, o, task, random)
	}
}

// follow waits for the end of a task across restarts of the stack.
func (w *world) follow(ctx context.Context, task string) (contract.Status, bool) {
	for {
		code, text, err := w.call(ctx, http.MethodGet, "/status/"+task+"?wait=5", "")
		var status contract.Status
		switch {
		case err != nil || code >= http.StatusInternalServerError:
			if !w.wait(ctx, retryPause) {
				return status, false
			}
		case code != http.StatusOK || json.Unmarshal(text, &status) != nil:
			w.fail("status of accepted %s: got %d %.300s, want 200", task, code, text)
			return status, false
		case status.Status != contract.StatusProcessing:
			return status, true
		}
	}
}

// call sends a request and reads the whole response.
func (w *world) call(ctx context.Context, method, path, body string, header ...string) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, w.server.addresses.URL+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, fmt.Errorf("cannot create a request: %w", err)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	request.Header.Set("Authorization", "Bearer "+w.server.token) // jobs are programs of the host
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	answer, err := w.http.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, text, err
}

package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/contract"
)

// The pauses of a client: before its next order at most, and before it asks
// again after no answer.
const (
	orderPause = 200 * time.Millisecond
	againPause = 40 * time.Millisecond
	// callLimit is how long an answer is awaited that a dead stack never gives.
	callLimit = 15 * time.Second
)

// client orders one export after the other until the last blow has fallen, and
// sees each to its end.
func (w *world) client(ctx context.Context, number uint64) {
	random := w.random(number + 100)
	for n := 0; ctx.Err() == nil; n++ {
		if !w.wait(ctx, time.Duration(random.Int64N(int64(orderPause)))) {
			return
		}
		select {
		case <-w.injected:
			if n > 0 {
				return
			}
		default:
		}
		o := w.orders[random.IntN(len(w.orders))]
		key := fmt.Sprintf("client %d, order %d", number, n)
		task, ok := w.accept(ctx, o, key)
		if !ok {
			return
		}
		w.note("%s is %s", task, o)
		w.mu.Lock()
		if before, known := w.accepted[task]; known {
			w.outcome.Problems = append(w.outcome.Problems, fmt.Sprintf("%s stands for two keys, %s and %s", task, before, o))
		}
		w.accepted[task] = o
		w.mu.Unlock()
		w.seeThrough(ctx, o, key, task, random)
	}
}

// accept repeats the POST until it is answered.
func (w *world) accept(ctx context.Context, o order, key string) (task string, ok bool) {
	for {
		status, text, err := w.call(ctx, http.MethodPost, "/export/"+o.format, o.body, "Idempotency-Key", key)
		var answer contract.ExportAccepted
		switch {
		case err != nil || status >= http.StatusInternalServerError:
			w.mu.Lock()
			w.outcome.Repeats++
			w.mu.Unlock()
			if !w.wait(ctx, againPause) {
				return "", false
			}
			continue
		case status != http.StatusAccepted && status != http.StatusOK: // the transport repeats it too
			w.broken("POST %s: %d %.300s", o, status, text)
			return "", false
		case json.Unmarshal(text, &answer) != nil || answer.TaskID == "":
			w.broken("POST %s: %.300s", o, text)
			return "", false
		}
		return answer.TaskID, true
	}
}

// seeThrough follows a task to its end and downloads what came of it. Now and
// then the key is used again.
func (w *world) seeThrough(ctx context.Context, o order, key, task string, random *rand.Rand) {
	if random.IntN(3) == 0 {
		if again, ok := w.repeat(ctx, o, key); ok && again != task {
			w.broken("the key of %s stands for %s too", task, again)
		}
	}
	status, ok := w.follow(ctx, task)
	if !ok {
		return
	}
	well, fits := w.endsAs(task, status.State, status.ErrorCode)
	if !fits {
		w.broken("%s, %s, ended as %s in attempt %d: %s: %s", task, o, status.State, status.Attempt, status.ErrorCode, status.Error)
		return
	}
	if well && o.keeps() {
		w.download(ctx, o, task, random)
	}
}

func (w *world) repeat(ctx context.Context, o order, key string) (task string, ok bool) {
	for {
		status, text, err := w.call(ctx, http.MethodPost, "/export/"+o.format, o.body, "Idempotency-Key", key)
		var answer contract.ExportAccepted
		if err == nil && status == http.StatusOK && json.Unmarshal(text, &answer) == nil {
			return answer.TaskID, true
		}
		if err == nil && status < http.StatusInternalServerError {
			w.broken("a key used again: %d %.300s", status, text)
			return "", false
		}
		if !w.wait(ctx, againPause) {
			return "", false
		}
	}
}

// follow waits for a task's end, over any number of lives of the stack.
func (w *world) follow(ctx context.Context, task string) (contract.Status, bool) {
	for {
		code, text, err := w.call(ctx, http.MethodGet, "/status/"+task+"?wait=5", "")
		var status contract.Status
		switch {
		case err != nil || code >= http.StatusInternalServerError:
			if !w.wait(ctx, againPause) {
				return status, false
			}
		case code != http.StatusOK || json.Unmarshal(text, &status) != nil:
			w.broken("%s was accepted, and its status is %d %.300s", task, code, text)
			return status, false
		case status.Status != contract.StatusProcessing:
			return status, true
		}
	}
}

// call makes a request and reads the answer; an error where there is none.
func (w *world) call(ctx context.Context, method, path, body string, header ...string) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, w.server.addresses.URL+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, fmt.Errorf("cannot make a request: %w", err)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
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

//go:build localstack

package acceptance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/stacktest"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/local/samples"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// patient is a client that retries until a call succeeds, as clients do while a server is
// replaced.
type patient struct {
	world *world
	batch string
}

// begin submits an export. It retries with the same idempotency key until the export is
// accepted.
func (p patient) begin(ctx context.Context, key string) (task string, err error) {
	body, err := json.Marshal(contract.ExportRequest{PI: samples.SampleRoot, BatchID: &p.batch})
	if err != nil {
		return "", err
	}
	var accepted contract.ExportAccepted
	err = p.retry(ctx, http.MethodPost, "/export/mods", body, key, &accepted)
	return accepted.TaskID, err
}

// end follows a task to its end.
func (p patient) end(ctx context.Context, task string) (contract.Status, error) {
	for {
		var status contract.Status
		if err := p.retry(ctx, http.MethodGet, "/status/"+task+"?wait=5", nil, "", &status); err != nil {
			return status, err
		}
		if status.Status != contract.StatusProcessing {
			return status, nil
		}
	}
}

// between is the pause before a retry.
const between = 200 * time.Millisecond

func (p patient) retry(ctx context.Context, method, path string, body []byte, key string, into any) error {
	for {
		code, text, err := p.call(ctx, method, path, body, key)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%s %s: no good answer in time, last answer %d %s (%w)", method, path, code, text, err)
		case err == nil && code/100 == 2: // 200 instead of 202 means a known key
			return json.Unmarshal(text, into)
		case err == nil && code < http.StatusInternalServerError && code != http.StatusTooManyRequests:
			return fmt.Errorf("%s %s: %d %s", method, path, code, text)
		}
		select {
		case <-ctx.Done():
		case <-time.After(between):
		}
	}
}

func (p patient) call(ctx context.Context, method, path string, body []byte, key string) (int, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, p.world.target.URL+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Authorization", "Bearer "+p.world.target.Token)
	request.Header.Set("Content-Type", "application/json")
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, text, err
}

// together makes n concurrent calls of do.
func together(n int, do func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { do(i) })
	}
	all.Wait()
}

// wellEnded checks that a run has completed, with one terminal event and no gap in its events.
func (w *world) wellEnded(t *testing.T, status contract.Status) {
	t.Helper()
	if status.State != "Completed" {
		t.Errorf("%s: got %+v", status.TaskID, status)
	}
	client := &outside.Client{T: t, URL: w.target.URL, Token: w.target.Token, Gateway: w.target.Gateway}
	if err := stacktest.CheckEvents(client.Events(status.TaskID)); err != nil {
		t.Errorf("%s: %v", status.TaskID, err)
	}
}

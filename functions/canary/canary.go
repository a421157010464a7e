// Package canary exports and downloads an entity through the public API, like a client. A
// schedule invokes it, and its errors raise an alarm.
//
// An invocation checks the export of the previous one and starts the next. So it neither waits
// nor stores anything. The idempotency key of an export is the time of its invocation.
package canary

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit"
)

// Interval is the time between two invocations, in which an export must complete.
const Interval = 15 * time.Minute

// format is the format of the canary's exports. batch is the id of their batch.
const (
	format = "mods"
	batch  = "canary"
)

// answerLimit limits how much of a response is read. An output may be larger.
const answerLimit = 64 << 10

// Canary is a client of one API. Its fields are required.
type Canary struct {
	// URL is the public address.
	URL string
	// PI is the entity to export.
	PI string
	// Token returns the client token.
	Token func(context.Context) (string, error)
	// Client performs the calls. It follows redirects to the bucket.
	Client *http.Client
	Now    func() time.Time
}

// Handler checks the last export and starts the next. It tries both, and returns their joined
// errors.
func Handler(c Canary) lambdakit.TaskFunc {
	return lambdakit.Task(func(ctx context.Context, _ struct{}) (struct{}, error) {
		now := c.Now().Truncate(Interval)
		checked := c.check(ctx, now.Add(-Interval))
		_, _, err := c.begin(ctx, now)
		return struct{}{}, errors.Join(checked, err)
	})
}

// begin submits the export of a time once. known reports that it was submitted before.
func (c Canary) begin(ctx context.Context, at time.Time) (task string, known bool, err error) {
	body, err := json.Marshal(contract.ExportRequest{PI: c.PI, BatchID: new(batch)})
	if err != nil {
		return "", false, fmt.Errorf("cannot encode the export: %w", err)
	}
	var accepted contract.ExportAccepted
	status, err := c.call(ctx, http.MethodPost, "/export/"+format, body, batch+"-"+strconv.FormatInt(at.Unix(), 10), &accepted)
	if err == nil && status/100 != 2 {
		err = fmt.Errorf("got status %d, want 200 or 202", status)
	}
	if err != nil {
		return "", false, fmt.Errorf("cannot begin an export: %w", err)
	}
	return accepted.TaskID, status == http.StatusOK, nil
}

// check returns nil if the export of a time completed and its output can be downloaded. If the
// export was not started, because the canary is new, check starts it and returns nil.
func (c Canary) check(ctx context.Context, at time.Time) error {
	task, known, err := c.begin(ctx, at)
	if err != nil || !known {
		return err
	}
	var status contract.Status
	if code, err := c.call(ctx, http.MethodGet, "/status/"+task, nil, "", &status); err != nil || code != http.StatusOK {
		return errors.Join(fmt.Errorf("task %s: got status %d, want 200", task, code), err)
	}
	if status.Status != contract.StatusSuccess {
		return fmt.Errorf("task %s: got state %s after %s, want a completed export", task, status.State, Interval)
	}
	code, err := c.call(ctx, http.MethodGet, "/download/"+task, nil, "", nil)
	if err != nil || code != http.StatusOK {
		return errors.Join(fmt.Errorf("download of %s: got status %d, want 200", task, code), err)
	}
	return nil
}

// call performs a request and decodes its response if into is not nil. It returns an error for
// an empty response.
func (c Canary) call(ctx context.Context, method, path string, body []byte, key string, into any) (status int, err error) {
	token, err := c.Token(ctx)
	if err != nil {
		return 0, fmt.Errorf("cannot read the canary's token: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.URL+path, bytes.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("cannot make the request: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	if key != "" {
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Idempotency-Key", key)
	}
	answer, err := c.Client.Do(request)
	if err != nil {
		return 0, fmt.Errorf("no answer: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, answerLimit))
	if err != nil || len(text) == 0 {
		return answer.StatusCode, errors.Join(errors.New("the answer is empty or broken off"), err)
	}
	if into != nil && answer.StatusCode/100 == 2 {
		err = json.Unmarshal(text, into)
	}
	return answer.StatusCode, err
}

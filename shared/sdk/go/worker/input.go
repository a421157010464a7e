package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// maxInput is larger than any input of a program that the control plane accepts.
const maxInput = 8 << 20

// inputTimeout limits the download of the input with its retries.
const inputTimeout = 2 * time.Minute

// Input returns the standard input of a job's program, or nil if it is empty. It retries for at
// most two minutes and then returns a Failure with category INFRASTRUCTURE.
func (t *Task) Input(ctx context.Context) ([]byte, error) {
	e := t.assignment.Envelope
	if e == nil || e.Program == nil || e.Program.Input == nil {
		return nil, nil
	}
	var content []byte
	err := t.retry(ctx, t.options.Clock.Now().Add(inputTimeout), "download of the input", func(ctx context.Context) (err error) {
		content, err = t.get(ctx, *e.Program.Input)
		return err
	})
	if err != nil && ctx.Err() == nil {
		return nil, Fail(contract.CategoryInfrastructure, true, fmt.Errorf("cannot read the input: %w", err))
	}
	return content, err
}

// Fetch reads an object of at most 8 MiB at a presigned URL, with the retries and the Failure of
// Input. what names it in messages.
func (t *Task) Fetch(ctx context.Context, what, url string) (content []byte, err error) {
	err = t.retry(ctx, t.options.Clock.Now().Add(inputTimeout), "download of "+what, func(ctx context.Context) (err error) {
		content, err = t.get(ctx, contract.Download{URL: url, Size: -1})
		return err
	})
	if err != nil && ctx.Err() == nil {
		return nil, Fail(contract.CategoryInfrastructure, true, fmt.Errorf("cannot read %s: %w", what, err))
	}
	return content, err
}

// get reads an object once. A negative size means that it is not known.
func (t *Task) get(ctx context.Context, from contract.Download) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, maxCall)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from.URL, nil)
	if err != nil {
		return nil, errMalformedURL
	}
	resp, err := t.http.Do(req)
	if err != nil {
		return nil, &retryableError{err: withoutURL(err)}
	}
	defer func() { _ = resp.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(resp.Body, maxInput))
	switch a := (answer{status: resp.StatusCode}); {
	case !a.ok():
		return nil, a.err()
	case err != nil:
		return nil, &retryableError{err: fmt.Errorf("truncated answer: %w", err)}
	case from.Size >= 0 && int64(len(content)) != from.Size:
		return nil, &retryableError{err: errors.New("it has another size than the envelope says")}
	}
	return content, nil
}

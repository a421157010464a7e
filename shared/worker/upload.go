package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/sortie-dev/sortie/shared/contract"
)

// ErrNoUpload is returned by UploadOutput and UploadLog if the assignment has no
// URL for the object, as with CALLBACK_URL.
var ErrNoUpload = errors.New("the task has no URL for this upload")

const (
	maxUpload     = 5 << 30 // of one PUT: AWS and R2
	uploadTimeout = 15 * time.Minute
	stallTimeout  = time.Minute
	maxForbidden  = 3
)

// UploadOutput stores size bytes of body at the envelope's output URL and makes
// them the output of the task. It retries for at most 15 minutes and then returns
// a Failure with category INFRASTRUCTURE. It reads body again for each retry and
// does not hold it in memory; an *os.File is suitable. The size is at most 5 GiB.
// The error is ErrNoUpload if the envelope has no URL.
func (t *Task) UploadOutput(ctx context.Context, body io.ReaderAt, size int64, contentType string) error {
	key, err := t.put(ctx, "output", func(g contract.TokenRenewal) *contract.Upload { return g.Output }, body, size, contentType)
	if err != nil {
		return err
	}
	t.mu.Lock()
	t.uploaded = &contract.TaskOutput{OutputPath: key, ByteSize: &size}
	t.mu.Unlock()
	return nil
}

// UploadLog stores size bytes of text at the envelope's log URL, like
// UploadOutput. A repeated call replaces the log.
func (t *Task) UploadLog(ctx context.Context, body io.ReaderAt, size int64) error {
	_, err := t.put(ctx, "log", func(g contract.TokenRenewal) *contract.Upload { return g.Log }, body, size, "text/plain; charset=utf-8")
	t.mu.Lock()
	t.logUploaded = t.logUploaded || err == nil
	t.mu.Unlock()
	return err
}

// put stores an object at the newest URL and returns its key.
func (t *Task) put(ctx context.Context, what string, of func(contract.TokenRenewal) *contract.Upload,
	body io.ReaderAt, size int64, contentType string,
) (string, error) {
	if size > maxUpload {
		return "", Fail(contract.CategoryUserCode, false, fmt.Errorf("the %s has %d bytes, want at most 5 GiB", what, size))
	}
	key, forbidden := "", 0
	err := t.retry(ctx, t.options.Clock.Now().Add(uploadTimeout), "upload of the "+what, func(ctx context.Context) error {
		t.mu.Lock()
		to := of(t.grant)
		t.mu.Unlock()
		if to == nil {
			return ErrNoUpload
		}
		a, err := t.putOnce(ctx, to, body, size, contentType)
		if err != nil {
			return err
		}
		key = to.Key
		switch {
		case a.ok():
			return nil
		case a.status == http.StatusForbidden && forbidden < maxForbidden:
			// The URL may have expired; the answer to a heartbeat renews it.
			forbidden++
			t.requestHeartbeat()
			return &retryableError{err: errors.New("the URL was refused")}
		}
		return a.err()
	})
	if err == nil || errors.Is(err, ErrNoUpload) || ctx.Err() != nil {
		return key, err
	}
	return "", Fail(contract.CategoryInfrastructure, true, fmt.Errorf("cannot store the %s: %w", what, err))
}

func (t *Task) putOnce(ctx context.Context, to *contract.Upload, body io.ReaderAt, size int64, contentType string) (answer, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(stallTimeout, func() { cancel(errors.New("the upload stalled")) })
	defer stalled.Stop()
	var from io.Reader = http.NoBody
	if size > 0 {
		from = &stallReader{io.NewSectionReader(body, 0, size), stalled}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, to.URL, from)
	if err != nil {
		return answer{}, errMalformedURL
	}
	req.ContentLength = size
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	for name, value := range to.Headers {
		req.Header.Set(name, value)
	}
	return t.send(req)
}

// stallReader restarts the stall timer with each read.
type stallReader struct {
	from    io.Reader
	stalled *time.Timer
}

func (r *stallReader) Read(p []byte) (int, error) {
	r.stalled.Reset(stallTimeout)
	return r.from.Read(p)
}

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

// ErrNoUpload: the assignment has no address for this. It is so where there is
// only CALLBACK_URL.
var ErrNoUpload = errors.New("the task has no address for this upload")

// Limits of uploads. The largest object of one PUT is AWS' and R2's: 5 GiB.
const (
	maxUpload      = 5 << 30
	uploadPatience = 15 * time.Minute
	stalledAfter   = time.Minute
	maxForbidden   = 3
)

// UploadOutput puts size bytes of body where the envelope says, and makes it
// the output of the task. It reads body again where it has to try again, for 15
// minutes at most, and holds none of it in memory; an *os.File is a body. The
// largest output is 5 GiB. ErrNoUpload where the envelope has no address.
func (t *Task) UploadOutput(ctx context.Context, body io.ReaderAt, size int64, contentType string) error {
	key, err := t.put(ctx, "output", func(l contract.TokenRenewal) *contract.Upload { return l.Output }, body, size, contentType)
	if err != nil {
		return err
	}
	t.mu.Lock()
	t.uploaded = &contract.TaskOutput{OutputPath: key, ByteSize: &size}
	t.mu.Unlock()
	return nil
}

// UploadLog puts size bytes of text where the envelope wants the log, like
// UploadOutput. It may be repeated: the last one stays.
func (t *Task) UploadLog(ctx context.Context, body io.ReaderAt, size int64) error {
	_, err := t.put(ctx, "log", func(l contract.TokenRenewal) *contract.Upload { return l.Log }, body, size, "text/plain; charset=utf-8")
	return err
}

// put stores an object at the newest address and gives its key.
func (t *Task) put(ctx context.Context, what string, of func(contract.TokenRenewal) *contract.Upload,
	body io.ReaderAt, size int64, contentType string,
) (string, error) {
	if size > maxUpload {
		return "", Fail(contract.CategoryUserCode, false, fmt.Errorf("the %s has %d bytes, and 5 GiB is the most", what, size))
	}
	key, forbidden := "", 0
	err := t.insist(ctx, t.options.Clock.Now().Add(uploadPatience), "upload of the "+what, func(ctx context.Context) error {
		t.mu.Lock()
		to := of(t.link)
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
			// The address may have expired; a heartbeat brings a new one.
			forbidden++
			t.beatNow()
			return &again{err: errors.New("the address was refused")}
		}
		return a.err()
	})
	if err == nil || errors.Is(err, ErrNoUpload) || ctx.Err() != nil {
		return key, err
	}
	return "", Fail(contract.CategoryInfrastructure, true, fmt.Errorf("the %s could not be stored: %w", what, err))
}

func (t *Task) putOnce(ctx context.Context, to *contract.Upload, body io.ReaderAt, size int64, contentType string) (answer, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(stalledAfter, func() { cancel(errors.New("the upload stalled")) })
	defer stalled.Stop()
	var from io.Reader = http.NoBody
	if size > 0 {
		from = &moving{io.NewSectionReader(body, 0, size), stalled}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, to.URL, from)
	if err != nil {
		return answer{}, errors.New("the address is none")
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

// moving gives the upload more time with each piece that is read of it.
type moving struct {
	of      io.Reader
	stalled *time.Timer
}

func (m *moving) Read(p []byte) (int, error) {
	m.stalled.Reset(stalledAfter)
	return m.of.Read(p)
}

package worker

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/wire/contract"
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

// UploadOutput stores size bytes of body at the envelope's output URL. With their SHA-256 they
// become the output of the task. It retries for at most 15 minutes and then returns a Failure
// with category INFRASTRUCTURE. It reads body again for each retry and does not hold it in
// memory; an *os.File is suitable. The size is at most 5 GiB. The error is ErrNoUpload if the
// envelope has no URL.
func (t *Task) UploadOutput(ctx context.Context, body io.ReaderAt, size int64, contentType string) error {
	key, digest, err := t.put(ctx, "output", func(g contract.TokenRenewal) *contract.Upload { return g.Output }, body, size, contentType)
	if err != nil {
		return err
	}
	t.mu.Lock()
	t.uploaded = &contract.TaskOutput{OutputPath: key, ByteSize: &size, Digest: digest}
	t.mu.Unlock()
	return nil
}

// UploadLog stores size bytes of text at the envelope's log URL, like
// UploadOutput. A repeated call replaces the log.
func (t *Task) UploadLog(ctx context.Context, body io.ReaderAt, size int64) error {
	_, _, err := t.put(ctx, "log", func(g contract.TokenRenewal) *contract.Upload { return g.Log }, body, size, "text/plain; charset=utf-8")
	t.mu.Lock()
	t.logUploaded = t.logUploaded || err == nil
	t.mu.Unlock()
	return err
}

// put stores an object at the newest URL. It returns the object's key and the digest of the
// sent bytes.
func (t *Task) put(ctx context.Context, what string, of func(contract.TokenRenewal) *contract.Upload,
	body io.ReaderAt, size int64, contentType string,
) (key, digest string, err error) {
	if size > maxUpload {
		return "", "", Fail(contract.CategoryUserCode, false, fmt.Errorf("the %s has %d bytes, want at most 5 GiB", what, size))
	}
	forbidden := 0
	now := t.options.Clock.Now()
	err = t.retry(ctx, t.resultUntil(now, now.Add(uploadTimeout)), "upload of the "+what, func(ctx context.Context) error {
		t.mu.Lock()
		to := of(t.grant)
		t.mu.Unlock()
		if to == nil {
			return ErrNoUpload
		}
		a, sent, err := t.putOnce(ctx, to, body, size, contentType)
		if err != nil {
			return err
		}
		key, digest = to.Key, sent
		switch {
		case a.ok():
			return nil
		case a.status == http.StatusForbidden && forbidden < maxForbidden:
			// The URL may have expired. The response to a heartbeat renews it.
			forbidden++
			t.requestHeartbeat()
			return &retryableError{err: errors.New("the URL was refused")}
		}
		return a.err()
	})
	if err == nil || errors.Is(err, ErrNoUpload) || ctx.Err() != nil {
		return key, digest, err
	}
	return "", "", Fail(contract.CategoryInfrastructure, true, fmt.Errorf("cannot store the %s: %w", what, err))
}

// putOnce makes one request. The digest is empty if the server responded before it had received
// the whole body.
func (t *Task) putOnce(ctx context.Context, to *contract.Upload, body io.ReaderAt, size int64, contentType string) (a answer, digest string, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(stallTimeout, func() { cancel(errors.New("the upload stalled")) })
	defer stalled.Stop()
	read := &hashedReader{from: io.NewSectionReader(body, 0, size), stalled: stalled, sum: sha256.New()}
	var from io.Reader = http.NoBody
	if size > 0 {
		from = read
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, to.URL, from)
	if err != nil {
		return answer{}, "", errMalformedURL
	}
	req.ContentLength = size
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	for name, value := range to.Headers {
		req.Header.Set(name, value)
	}
	a, err = t.send(req)
	return a, read.digest(size), err
}

// hashedReader computes the SHA-256 of the bytes that are read, and restarts the stall timer at
// each read. The transport may still read after the response.
type hashedReader struct {
	from    io.Reader
	stalled *time.Timer

	mu  sync.Mutex
	sum hash.Hash
	n   int64
}

func (r *hashedReader) Read(p []byte) (int, error) {
	r.stalled.Reset(stallTimeout)
	n, err := r.from.Read(p)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sum.Write(p[:n])
	r.n += int64(n)
	return n, err
}

// digest returns the digest of size bytes, or "" if another number of bytes was read.
func (r *hashedReader) digest(size int64) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n != size {
		return ""
	}
	return fmt.Sprintf("sha256:%x", r.sum.Sum(nil))
}

// Digest returns the digest of size bytes of body for contract.TaskOutput, for workers
// that store their output without UploadOutput.
func Digest(body io.ReaderAt, size int64) (string, error) {
	sum := sha256.New()
	if _, err := io.CopyN(sum, io.NewSectionReader(body, 0, size), size); err != nil {
		return "", fmt.Errorf("cannot read the output: %w", err)
	}
	return fmt.Sprintf("sha256:%x", sum.Sum(nil)), nil
}

package chaos

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"net/http"
	"time"
)

// A client reads slowly, so that faults occur during downloads.
const (
	readSize  = 256 << 10
	readPause = 10 * time.Millisecond
)

// download reads an output to its end across restarts of the stack and compares it with the
// baseline. After an interruption it restarts or resumes at random.
func (w *world) download(ctx context.Context, o workload, task string, random *rand.Rand) {
	sum, had := sha256.New(), int64(0)
	for ctx.Err() == nil {
		n, ended, err := w.read(ctx, task, had, sum)
		had += n
		if ended {
			w.compare(o, task, had, sum)
			return
		}
		if err != nil {
			w.fail("GET /download/%s: %v", task, err)
			return
		}
		if random.IntN(2) == 0 {
			sum, had = sha256.New(), 0
		}
		w.wait(ctx, retryPause)
	}
}

func (w *world) compare(o workload, task string, size int64, sum hash.Hash) {
	got := fingerprint{size, hex.EncodeToString(sum.Sum(nil))}
	if want := w.config.Baseline.files[o]; got != want {
		w.fail("%s, %s: got file %+v, want %+v", task, o, got, want)
	}
}

// read copies the output from the offset from to sum. ended is true at the end of the output.
// An interrupted response is no error, but an unexpected status is.
func (w *world) read(ctx context.Context, task string, from int64, sum io.Writer) (n int64, ended bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.server.addresses.URL+"/download/"+task, nil)
	if err != nil {
		return 0, false, fmt.Errorf("cannot create a request: %w", err)
	}
	want := http.StatusOK
	if from > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
		want = http.StatusPartialContent
	}
	answer, err := w.http.Do(request)
	if err != nil {
		return 0, false, nil //nolint:nilerr // the stack is down
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode == http.StatusRequestedRangeNotSatisfiable && from > 0 {
		return 0, true, nil // interrupted after the last byte
	}
	if answer.StatusCode != want {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 300))
		if answer.StatusCode >= http.StatusInternalServerError {
			return 0, false, nil
		}
		return 0, false, fmt.Errorf("%s: %s", answer.Status, text)
	}
	for {
		took, err := io.CopyN(sum, answer.Body, readSize)
		n += took
		if err != nil {
			return n, n == answer.ContentLength, nil //nolint:nilerr // the end, or the stack is down
		}
		if !w.wait(ctx, readPause) {
			return n, false, nil
		}
	}
}

// fingerprintOf downloads an output in one request.
func (w *world) fingerprintOf(ctx context.Context, task string) (fingerprint, bool) {
	sum := sha256.New()
	size, ended, err := w.read(ctx, task, 0, sum)
	return fingerprint{size, hex.EncodeToString(sum.Sum(nil))}, ended && err == nil
}

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

// The pace of a client that reads slowly, so that a blow may fall meanwhile.
const (
	sip      = 256 << 10
	sipPause = 10 * time.Millisecond
)

// download reads an output to its end, whatever befalls the stack, and holds it
// against the file that was made in peace. What broke off is begun anew, or
// gone on with, as it comes.
func (w *world) download(ctx context.Context, o order, task string, random *rand.Rand) {
	sum, had := sha256.New(), int64(0)
	for ctx.Err() == nil {
		n, ended, err := w.read(ctx, task, had, sum)
		had += n
		if ended {
			w.compare(o, task, had, sum)
			return
		}
		if err != nil {
			w.broken("GET /download/%s: %v", task, err)
			return
		}
		if random.IntN(2) == 0 {
			sum, had = sha256.New(), 0
		}
		w.wait(ctx, againPause)
	}
}

func (w *world) compare(o order, task string, size int64, sum hash.Hash) {
	got := imprint{size, hex.EncodeToString(sum.Sum(nil))}
	if want := w.config.Baseline.prints[o]; got != want {
		w.broken("%s, %s, has the file %+v; in peace it is %+v", task, o, got, want)
	}
}

// read gives sum what there is from an offset on. ended: that was all. An error
// is an answer that should not be; a broken one is none.
func (w *world) read(ctx context.Context, task string, from int64, sum io.Writer) (n int64, ended bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.server.addresses.URL+"/download/"+task, nil)
	if err != nil {
		return 0, false, fmt.Errorf("cannot make a request: %w", err)
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
		return 0, true, nil // it broke off behind the last byte
	}
	if answer.StatusCode != want {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 300))
		if answer.StatusCode >= http.StatusInternalServerError {
			return 0, false, nil
		}
		return 0, false, fmt.Errorf("%s: %s", answer.Status, text)
	}
	for {
		took, err := io.CopyN(sum, answer.Body, sip)
		n += took
		if err != nil {
			return n, n == answer.ContentLength, nil //nolint:nilerr // the end, or the stack is down
		}
		if !w.wait(ctx, sipPause) {
			return n, false, nil
		}
	}
}

// printOf downloads an output that is new.
func (w *world) printOf(ctx context.Context, task string) (imprint, bool) {
	sum := sha256.New()
	size, ended, err := w.read(ctx, task, 0, sum)
	return imprint{size, hex.EncodeToString(sum.Sum(nil))}, ended && err == nil
}

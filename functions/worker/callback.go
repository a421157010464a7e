package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/sortie-dev/sortie/functions/worker/source"
)

// Metrics are the figures of an export, in the contract's spelling.
type Metrics struct {
	TotalTimeMS int64 `json:"total_time_ms"`
	// EntitiesExported are the records of the document, EntitiesIncomplete
	// those of them that lack something. EntitiesFailed are not in it.
	EntitiesExported   int `json:"entities_exported"`
	EntitiesFailed     int `json:"entities_failed"`
	EntitiesIncomplete int `json:"entities_incomplete"`
	// PeakMemoryMB is the largest resident set of the process, in MiB, rounded
	// up; 0 where the system does not tell.
	PeakMemoryMB int64 `json:"peak_memory_mb"`
}

// report is the body of the callback.
type report struct {
	TaskID         string   `json:"task_id"`
	BatchID        string   `json:"batch_id"`
	Status         string   `json:"status"` // success, error
	OutputR2Key    string   `json:"output_r2_key,omitempty"`
	OutputFileName string   `json:"output_file_name,omitempty"`
	OutputFileSize int64    `json:"output_file_size,omitempty"`
	Metrics        *Metrics `json:"metrics,omitempty"`
	Error          string   `json:"error,omitempty"`
}

// How long a report is tried to be delivered.
const (
	reportPatience = 10 * time.Minute
	reportTimeout  = 30 * time.Second
	reportFirst    = 500 * time.Millisecond
	reportLongest  = 30 * time.Second
	maxErrorText   = 2 << 10
)

// deliver posts the report until it is accepted (2xx) or refused (any other
// answer but 408, 425, 429 and 5xx), for ten minutes at most. Its errors do
// not name the address: it carries a secret.
func (w *work) deliver(ctx context.Context, r report) error {
	if len(r.Error) > maxErrorText {
		r.Error = string(bytes.ToValidUTF8([]byte(r.Error[:maxErrorText]), nil)) + " [cut]"
	}
	body, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("cannot write the report: %w", err)
	}
	begun := w.ports.Clock.Now()
	for attempt := 0; ; attempt++ {
		status, err := w.post(ctx, body)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		why := "no answer"
		if err == nil {
			if status >= 200 && status < 300 {
				return nil
			}
			why = fmt.Sprintf("%d %s", status, http.StatusText(status))
			if !temporary(status) {
				return fmt.Errorf("the callback was refused: %s", why)
			}
		}
		longest := min(reportLongest, reportFirst<<min(attempt, 16))
		// Half of it is certain, so that minutes are minutes.
		delay := longest/2 + time.Duration(w.ports.Jitter()*float64(longest/2))
		if w.ports.Clock.Now().Add(delay).Sub(begun) > reportPatience {
			return fmt.Errorf("the callback could not be delivered: %s: %w", why, errors.Join(err))
		}
		w.log.WarnContext(ctx, "callback failed, trying again", "attempt", attempt+1, "why", why, "delay", delay)
		if err := source.Sleep(ctx, w.ports.Clock, delay); err != nil {
			return err
		}
	}
}

func temporary(status int) bool {
	return status >= 500 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout ||
		status == http.StatusTooEarly
}

// post makes one call. It does not follow redirects: the report, and the
// secret, are for the address that was given.
func (w *work) post(ctx context.Context, body []byte) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.config.CallbackURL, bytes.NewReader(body))
	if err != nil {
		return 0, errors.New("the callback's address is none")
	}
	req.Header.Set("Content-Type", "application/json")
	client := *w.ports.HTTP
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Do(req)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err
		}
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
	return resp.StatusCode, nil
}

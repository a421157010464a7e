package fly

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

const (
	logsTimeout = 30 * time.Second
	// logsLimit is the most that is read of a log, in bytes. The local API stores less.
	logsLimit = 8 << 20
)

var _ port.MachineLogs = (*Runner)(nil)

// logReader reads the output of a machine.
type logReader struct {
	client *http.Client
	base   *url.URL
}

// Logs returns the output of the machine's program, of this version if the machine has one. It
// returns ErrNotFound if the API has no logs.
func (r *Runner) Logs(ctx context.Context, m port.Machine) ([]byte, error) {
	const what = "read the machine's log"
	if !located(m) || !r.cfg.Logs {
		return nil, fmt.Errorf("cannot %s: %w", what, port.ErrNotFound)
	}
	text, err := r.logs.read(ctx, m)
	if err != nil {
		return nil, fmt.Errorf("cannot %s: %w", what, err)
	}
	return text, nil
}

func (l logReader) read(ctx context.Context, m port.Machine) ([]byte, error) {
	target := l.base.Scheme + "://" + l.base.Host + "/v1/apps/" + url.PathEscape(m.App) + "/machines/" + url.PathEscape(m.ID) + "/logs"
	if m.Version != "" {
		target += "?" + url.Values{"instance_id": {m.Version}}.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, err
	}
	answer, err := l.client.Do(request)
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "the platform did not answer")
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return nil, port.ErrNotFound
	default:
		return nil, fault.New(fault.Unavailable, "the platform answers %d", answer.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, logsLimit))
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "the platform broke off")
	}
	return text, nil
}

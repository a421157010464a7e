package container

import (
	"bytes"
	"context"
	"fmt"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/port"
)

// logsLimit is the most that is read of a log, in bytes, and about the most that the engine
// stores.
const logsLimit = 8 << 20

// Logs implements port.MachineLogs with the engine's logs. It returns only the end of a longer
// log.
func (r *Runner) Logs(ctx context.Context, m port.Machine) ([]byte, error) {
	const what = "read the container's log"
	if !located(m) {
		return nil, fmt.Errorf("cannot %s: %w", what, port.ErrNotFound)
	}
	e, err := r.reach(ctx, what)
	if err != nil {
		return nil, err
	}
	if _, err = r.inspect(ctx, e, m.ID); err == nil {
		var text []byte
		if text, err = read(ctx, e, m.ID); err == nil {
			return text, nil
		}
	}
	if errdefs.IsNotFound(err) {
		return nil, fmt.Errorf("cannot %s: %w", what, port.ErrNotFound)
	}
	return nil, failure(ctx, err, what)
}

func read(ctx context.Context, e *engine, id string) ([]byte, error) {
	stream, err := e.api.ContainerLogs(ctx, id, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true})
	if err != nil {
		return nil, err
	}
	defer func() { _ = stream.Close() }() // it was only read
	var both end
	if _, err := stdcopy.StdCopy(&both, &both, stream); err != nil {
		return nil, err
	}
	return both.text(), nil
}

// end stores the last logsLimit bytes.
type end struct {
	tail bytes.Buffer
	cut  int
}

// Write implements io.Writer. It does not fail.
func (e *end) Write(p []byte) (int, error) {
	e.tail.Write(p)
	if over := e.tail.Len() - 2*logsLimit; over > 0 {
		e.drop(e.tail.Len() - logsLimit)
	}
	return len(p), nil
}

func (e *end) drop(n int) {
	e.tail.Next(n)
	e.cut += n
}

// text returns the stored bytes, after a line that marks the cut.
func (e *end) text() []byte {
	if over := e.tail.Len() - logsLimit; over > 0 {
		e.drop(over)
	}
	if e.cut == 0 {
		return e.tail.Bytes()
	}
	return append(bytes.TrimPrefix(limit.CutMark(int64(e.cut)), []byte("\n")), e.tail.Bytes()...)
}

package kubernetes

import (
	"bytes"
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/port"
)

// Logs implements port.MachineLogs with the node's log of the container. If the log is over
// twice the limit of a stored one, Logs omits the middle.
func (r *Runner) Logs(ctx context.Context, m port.Machine) ([]byte, error) {
	const what = "read the machine's log"
	none := fmt.Errorf("cannot %s: %w", what, port.ErrNotFound)
	p, at := r.find(m)
	if p == nil {
		return nil, none
	}
	o := p.seen(at.uid)
	if r.cfg.Poll || len(o.pods) == 0 {
		var err error
		if o, err = r.fetch(ctx, at); err != nil {
			return nil, failure(ctx, err, what)
		}
	}
	pod := o.pod()
	if pod == nil {
		return nil, none
	}
	stream, err := r.cfg.Client.Log(ctx, at.namespace, pod.Name, &corev1.PodLogOptions{Container: container})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsBadRequest(err): // gone, or not started
		return nil, none
	case err != nil:
		return nil, failure(ctx, err, what)
	}
	defer stream.Close()
	text, err := readEnds(stream, limit.Log)
	if err != nil {
		return nil, failure(ctx, err, what)
	}
	if text, lost := withoutNote(text, pod); !lost || len(text) > 0 {
		return text, nil
	}
	return nil, none
}

// withoutNote removes the note that a kubelet adds to a log that it cannot read to its end, such
// as that of a container that is removed meanwhile. The kubelet answers with 200 all the same.
func withoutNote(text []byte, pod *corev1.Pod) (log []byte, noted bool) {
	for _, c := range pod.Status.ContainerStatuses {
		if log, noted = bytes.CutSuffix(text, []byte("unable to retrieve container logs for "+c.ContainerID)); noted && c.ContainerID != "" {
			return log, true
		}
	}
	return text, false
}

// readEnds reads the first and the last size bytes, with a mark between them for the omitted
// ones.
func readEnds(from io.Reader, size int) ([]byte, error) {
	begin, err := io.ReadAll(io.LimitReader(from, int64(size)))
	if err != nil || len(begin) < size {
		return begin, err
	}
	var end []byte
	missing := int64(0)
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		end = append(end, buffer[:n]...)
		if over := len(end) - size; over > size || err != nil && over > 0 {
			missing += int64(over)
			end = append(end[:0], end[over:]...)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	if missing == 0 {
		return append(begin, end...), nil
	}
	return bytes.Join([][]byte{begin, end}, limit.CutMark(missing)), nil
}

package logs

import (
	"bytes"

	"github.com/sortie-dev/sortie/shared/base/livelog"
	"github.com/sortie-dev/sortie/shared/base/redact"
)

// masker masks secrets in frames, including those that span several frames of a stream.
type masker struct {
	redactor *redact.Redactor
	streams  map[livelog.Stream]*maskedStream
}

type maskedStream struct {
	masked  bytes.Buffer
	writer  *redact.Writer
	missing int64         // bytes omitted before the next data
	last    livelog.Frame // the newest one that was fed, with the times of the next output
	damaged int           // bytes that may still be the rest of a secret after a cut
}

func newMasker(redactor *redact.Redactor) *masker {
	return &masker{redactor, map[livelog.Stream]*maskedStream{}}
}

func (m *masker) stream(name livelog.Stream) *maskedStream {
	s := m.streams[name]
	if s == nil {
		s = &maskedStream{}
		s.writer = m.redactor.Writer(&s.masked)
		m.streams[name] = s
	}
	return s
}

// feed adds frames and returns the masked output that is complete. It omits the word on each
// side of a cut, which may be part of a secret.
func (m *masker) feed(frames []livelog.Frame) []livelog.Frame {
	var shown []livelog.Frame
	for _, f := range frames {
		s := m.stream(f.Stream)
		s.last = f
		if f.Cut > 0 {
			s.missing += f.Cut + int64(s.writer.Held())
			s.writer, s.damaged = m.redactor.Writer(&s.masked), secretLength
			continue
		}
		_, _ = s.writer.Write(s.afterCut(f.Data)) // a buffer returns no error
		shown = s.flush(shown, f.Stream)
	}
	return shown
}

// afterCut removes the first word of data that follows a cut.
func (s *maskedStream) afterCut(data []byte) []byte {
	if s.damaged == 0 {
		return data
	}
	n := bytes.IndexAny(data[:min(len(data), s.damaged)], " \t\r\n")
	switch {
	case n >= 0:
		s.damaged = 0
	case len(data) < s.damaged:
		n = len(data)
		s.damaged -= n
	default:
		n, s.damaged = s.damaged, 0
	}
	s.missing += int64(n)
	return data[n:]
}

func (s *maskedStream) flush(shown []livelog.Frame, name livelog.Stream) []livelog.Frame {
	if s.masked.Len() == 0 {
		return shown
	}
	if s.missing > 0 {
		shown = append(shown, livelog.Frame{Stream: name, Cut: s.missing, At: s.last.At, Lag: s.last.Lag})
		s.missing = 0
	}
	shown = append(shown, livelog.Frame{Stream: name, Data: bytes.Clone(s.masked.Bytes()), At: s.last.At, Lag: s.last.Lag})
	s.masked.Reset()
	return shown
}

// rest returns the text that each stream still holds back, for streams that hold at most most
// bytes.
func (m *masker) rest(most int) []livelog.Frame {
	var shown []livelog.Frame
	for _, name := range livelog.Streams() {
		if s := m.streams[name]; s != nil && s.writer.Held() <= most {
			_ = s.writer.Close() // a buffer returns no error
			shown = s.flush(shown, name)
		}
	}
	return shown
}

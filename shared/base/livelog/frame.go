package livelog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/base/limit"
)

// ContentType is the media type of a stored log with frames. Other logs are plain text.
const ContentType = "application/vnd.sortie.log"

// Stream is one of the two output streams of a program.
type Stream string

// The streams.
const (
	Stdout Stream = "stdout"
	Stderr Stream = "stderr"
)

// Streams lists the streams.
func Streams() []Stream { return []Stream{Stdout, Stderr} }

// Frame is a chunk of a stream, or a cut that replaces missing chunks.
type Frame struct {
	Stream Stream
	// Sequence is the number of the chunk; 0 in a stored log.
	Sequence int
	Data     []byte
	// Cut is the number of bytes of the stream that are missing at this position. A frame with
	// Cut has no Data.
	Cut int64
	// At is the time at which the chunk was accepted, to the millisecond; zero if unknown.
	At time.Time
	// Lag is the time from the chunk's oldest byte to its sending by the worker, in whole
	// milliseconds; zero if unknown.
	Lag time.Duration
}

// WrittenAt returns the time at which the oldest byte of the chunk was written; zero if unknown.
func (f Frame) WrittenAt() time.Time {
	if f.At.IsZero() {
		return time.Time{}
	}
	return f.At.Add(-f.Lag)
}

// Length returns the number of bytes of the stream that the frame covers, Cut included.
func (f Frame) Length() int64 { return int64(len(f.Data)) + f.Cut }

// Text returns Data. For a cut it returns limit.CutMark, the line that replaces the missing
// bytes.
func (f Frame) Text() []byte {
	if f.Cut > 0 {
		return limit.CutMark(f.Cut)
	}
	return f.Data
}

// cost returns an upper estimate of the bytes that the frame adds to its object.
func (f Frame) cost() int64 { return int64(len(f.Data)) + 32 }

func cost(frames []Frame) (n int64) {
	for _, f := range frames {
		n += f.cost()
	}
	return n
}

// EncodeFrames returns the content of a segment or of a stored log.
func EncodeFrames(frames []Frame) []byte { return encode(acceptedOf(frames), frames) }

// DecodeFrames decodes the content of a segment or of a stored log.
func DecodeFrames(content []byte) ([]Frame, error) {
	var header accepted
	frames, err := decode(content, &header)
	return header.applied(frames), err
}

// accepted has At and Lag of each frame of an object. It is stored in the header, where an
// earlier version ignores it. At is in milliseconds since 1970; 0 is unknown.
type accepted struct {
	At []int64 `json:"at,omitempty"`
	// Lag is in milliseconds; 0 is unknown.
	Lag []int64 `json:"lag,omitempty"`
}

// acceptedOf returns At and Lag of the frames. A list is nil if all its values are unknown.
func acceptedOf(frames []Frame) accepted {
	return accepted{
		At: known(frames, func(f Frame) int64 {
			if f.At.IsZero() {
				return 0
			}
			return f.At.UnixMilli()
		}),
		Lag: known(frames, func(f Frame) int64 { return f.Lag.Milliseconds() }),
	}
}

// known returns the result of of for each frame, or nil if all results are 0.
func known(frames []Frame, of func(Frame) int64) (list []int64) {
	some := false
	for _, f := range frames {
		n := of(f)
		list, some = append(list, n), some || n != 0
	}
	if !some {
		return nil
	}
	return list
}

// applied sets At and Lag of the frames and returns them. It ignores a list of another length:
// an earlier version has added a frame without times.
func (a accepted) applied(frames []Frame) []Frame {
	for i := range frames {
		if len(a.At) == len(frames) && a.At[i] != 0 {
			frames[i].At = time.UnixMilli(a.At[i]).UTC()
		}
		if len(a.Lag) == len(frames) {
			frames[i].Lag = time.Duration(a.Lag[i]) * time.Millisecond
		}
	}
	return frames
}

// encode returns the header as a line of JSON, followed by the frames. Each frame is a line
// with its stream, sequence and size, and its data. A cut has no data.
func encode(header any, frames []Frame) []byte {
	first, err := json.Marshal(header)
	if err != nil { // cannot fail: a struct of numbers and times
		first = []byte("{}")
	}
	content := bytes.NewBuffer(make([]byte, 0, int64(len(first))+1+cost(frames)))
	content.Write(append(first, '\n'))
	for _, f := range frames {
		if f.Cut > 0 {
			fmt.Fprintf(content, "%s cut %d\n", f.Stream, f.Cut)
			continue
		}
		fmt.Fprintf(content, "%s %d %d\n", f.Stream, f.Sequence, len(f.Data))
		content.Write(f.Data)
		content.WriteByte('\n')
	}
	return content.Bytes()
}

var errMalformed = errors.New("malformed log object")

func decode(content []byte, header any) ([]Frame, error) {
	first, rest, ok := bytes.Cut(content, []byte("\n"))
	if err := json.Unmarshal(first, header); err != nil || !ok {
		return nil, errMalformed
	}
	var frames []Frame
	for len(rest) > 0 {
		line, data, ok := bytes.Cut(rest, []byte("\n"))
		words := strings.Split(string(line), " ")
		if !ok || len(words) != 3 {
			return nil, errMalformed
		}
		f := Frame{Stream: Stream(words[0])}
		n, err := strconv.ParseInt(words[2], 10, 64)
		if err != nil || n < 0 {
			return nil, errMalformed
		}
		if rest = data; words[1] == "cut" {
			f.Cut = n
			frames = append(frames, f)
			continue
		}
		if f.Sequence, err = strconv.Atoi(words[1]); err != nil || int64(len(data)) <= n || data[n] != '\n' {
			return nil, errMalformed
		}
		f.Data, rest = data[:n:n], data[n+1:]
		frames = append(frames, f)
	}
	return frames, nil
}

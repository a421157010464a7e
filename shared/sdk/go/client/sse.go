package client

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// mostMessage limits a message of a stream, in bytes.
const mostMessage = 16 << 20

var errTooLarge = errors.New("a message of the stream is too large")

// message is a message of a stream of Server-Sent Events.
type message struct {
	// id is that of the last message that had one.
	id string
	// event is "message" if the message names none.
	event string
	data  string
}

// decoder decodes Server-Sent Events as the WHATWG specifies them. Chunks may end anywhere.
type decoder struct {
	// lastID is the id of the newest complete message, with or without data.
	lastID string
	// retry is the newest reconnection time of the server; nil before one.
	retry *time.Duration

	rest        []byte
	begun       bool
	afterReturn bool
	id, event   string
	data        []string
	size        int
}

// decode returns the messages that a chunk completes.
func (d *decoder) decode(chunk []byte) ([]message, error) {
	d.rest = append(d.rest, chunk...)
	if !d.begun {
		mark := []byte("\xef\xbb\xbf")
		if len(d.rest) < len(mark) && bytes.HasPrefix(mark, d.rest) {
			return nil, nil
		}
		d.rest, d.begun = bytes.TrimPrefix(d.rest, mark), true
	}
	var messages []message
	for {
		if d.afterReturn && len(d.rest) > 0 {
			d.rest, d.afterReturn = bytes.TrimPrefix(d.rest, []byte("\n")), false
		}
		end := bytes.IndexAny(d.rest, "\r\n")
		if end < 0 {
			break
		}
		d.afterReturn = d.rest[end] == '\r'
		line := string(d.rest[:end])
		d.rest = d.rest[end+1:]
		if complete, ok := d.take(line); ok {
			messages = append(messages, complete)
		}
	}
	d.rest = bytes.Clone(d.rest)
	if d.size+len(d.rest) > mostMessage {
		return messages, errTooLarge
	}
	return messages, nil
}

func (d *decoder) take(line string) (message, bool) {
	if line == "" {
		return d.dispatch()
	}
	if !utf8.ValidString(line) {
		line = strings.ToValidUTF8(line, "\uFFFD")
	}
	field, value, _ := strings.Cut(line, ":")
	value = strings.TrimPrefix(value, " ")
	switch field {
	case "data":
		d.data = append(d.data, value)
		d.size += len(value) + 1
	case "event":
		d.event = value
	case "id":
		if !strings.Contains(value, "\x00") {
			d.id = value
		}
	case "retry":
		if ms, err := strconv.ParseUint(value, 10, 31); err == nil {
			retry := time.Duration(ms) * time.Millisecond
			d.retry = &retry
		}
	}
	return message{}, false
}

func (d *decoder) dispatch() (message, bool) {
	d.lastID = d.id
	complete := message{d.id, d.event, strings.Join(d.data, "\n")}
	if complete.event == "" {
		complete.event = "message"
	}
	ok := len(d.data) > 0
	d.data, d.event, d.size = nil, "", 0
	return complete, ok
}

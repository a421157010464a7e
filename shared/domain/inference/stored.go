package inference

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Stored is the JSON form of a request, as it is stored with its task.
type Stored struct {
	// Record is for the record of the task. Object is the whole request if it does not fit there;
	// Record is then its head.
	Record, Object []byte
}

// headBytes is the length of the beginning of a request in its head. Tasks with the same beginning
// share a replica.
const headBytes = 1024

// Stored returns the JSON form. Fault: InvalidParams with the field if a part of it is too large.
func (q Request) Stored() (s Stored, err error) {
	if s.Record, err = json.Marshal(q); err != nil || len(s.Record) <= RecordSize {
		return s, wrapEncode(err)
	}
	var whole bytes.Buffer
	encoder := json.NewEncoder(&whole)
	encoder.SetEscapeHTML(false) // escapes would make it larger than the body that the client has sent
	if err := encoder.Encode(q); err != nil {
		return s, wrapEncode(err)
	}
	if s.Object = bytes.TrimSpace(whole.Bytes()); len(s.Object) > RequestSize {
		return s, invalidParams("prompt", "a request of %d bytes, want at most %d", len(s.Object), RequestSize)
	}
	head := Request{
		Prompt:  strings.ToValidUTF8(string(s.Object[:headBytes]), ""),
		Choices: q.Choices, Context: q.Context, Seed: q.Seed, Temperature: q.Temperature, TopP: q.TopP, Options: q.Options, Front: q.Front,
	}
	if s.Record, err = json.Marshal(head); err != nil {
		return s, wrapEncode(err)
	}
	if len(s.Record) > RecordSize {
		return s, invalidParams("tools", "tools, a schema and other options of %d bytes, want at most %d; put long texts into messages", len(s.Record), RecordSize)
	}
	return s, nil
}

func wrapEncode(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("cannot encode the request: %w", err)
}

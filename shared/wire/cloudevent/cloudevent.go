// Package cloudevent reads the events of HTTP requests (HTTP protocol binding of CloudEvents 1.0) in
// the structured, the binary and the batched mode.
package cloudevent

import (
	"bytes"
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/sensor"
)

// The content types of the structured and of the batched mode.
const (
	TypeEvent = "application/cloudevents+json"
	TypeBatch = "application/cloudevents-batch+json"
)

// The limits of a request: its body in bytes, and the events of a batch.
const (
	MaxBody  = 1 << 20
	MaxBatch = 100
)

// headerPrefix is the prefix of the headers with attributes in the binary mode.
const headerPrefix = "Ce-"

// Supported reports whether the headers of a request are those of one of the modes.
func Supported(header http.Header) bool {
	kind, params, err := mime.ParseMediaType(header.Get("Content-Type"))
	charset := params["charset"]
	switch {
	case err == nil && (kind == TypeEvent || kind == TypeBatch):
		return charset == "" || strings.EqualFold(charset, "utf-8")
	case strings.HasPrefix(kind, "application/cloudevents"):
		return false
	}
	return len(header.Values(headerPrefix+"Specversion")) > 0
}

// Read returns the events of a request that is Supported, at least one except in an empty batch.
// The faults are InvalidRequest with the attribute, in a batch after the index of the event, and
// TooLarge.
func Read(header http.Header, body []byte) ([]sensor.Event, error) {
	kind, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	switch {
	case err == nil && kind == TypeBatch:
		return batch(body)
	case err == nil && kind == TypeEvent:
		e, err := sensor.Parse(body)
		return []sensor.Event{e}, err
	}
	e, err := binary(header, body)
	return []sensor.Event{e}, err
}

func batch(body []byte) ([]sensor.Event, error) {
	var documents []json.RawMessage
	if err := json.Unmarshal(body, &documents); err != nil || documents == nil {
		return nil, fault.New(fault.InvalidRequest, "malformed batch, want a JSON array of events")
	}
	if len(documents) > MaxBatch {
		return nil, fault.New(fault.TooLarge, "a batch of %d events, want at most %d", len(documents), MaxBatch)
	}
	events := make([]sensor.Event, len(documents))
	for i, document := range documents {
		e, err := sensor.Parse(document)
		if err != nil {
			f := *fault.Of(err)
			f.Field = strings.TrimSuffix(strconv.Itoa(i)+"."+f.Field, ".")
			return nil, &f
		}
		events[i] = e
	}
	return events, nil
}

// binary reads an event whose attributes are headers and whose data is the body.
func binary(header http.Header, body []byte) (sensor.Event, error) {
	attributes := map[string]string{}
	for name, values := range header {
		attribute, ok := strings.CutPrefix(name, headerPrefix)
		if !ok {
			continue
		}
		attribute = strings.ToLower(attribute)
		if len(values) > 1 {
			return sensor.Event{}, fault.Invalid("ce-"+attribute, "%d headers, want one", len(values))
		}
		value, err := unescaped(values[0])
		if err != nil {
			return sensor.Event{}, fault.Invalid("ce-"+attribute, "malformed percent-encoding, want %% and two hexadecimal digits")
		}
		attributes[attribute] = value
	}
	if kind := header.Get("Content-Type"); kind != "" {
		attributes["datacontenttype"] = kind
	}
	if len(bytes.TrimSpace(body)) == 0 {
		body = nil
	}
	return sensor.New(attributes, body)
}

// unescaped decodes the percent-encoding of a header, which may be in quotes.
func unescaped(value string) (string, error) {
	if inner, ok := strings.CutPrefix(value, `"`); ok && strings.HasSuffix(inner, `"`) {
		value = strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(strings.TrimSuffix(inner, `"`))
	}
	return url.PathUnescape(value)
}

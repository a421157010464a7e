package sensor

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"mime"
	"net/url"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// The limits of an event.
const (
	// MaxEvent is the largest event in bytes of JSON (CloudEvents 1.0, "Size Limits": 64 KiB).
	MaxEvent = 64 << 10
	// MaxAttribute is the longest attribute in bytes, and maxAttributes their largest number.
	MaxAttribute  = 2048
	maxAttributes = 64
)

// SpecVersion is the version of CloudEvents.
const SpecVersion = "1.0"

// Event is a CloudEvent. Its id is unique among the events of its source.
type Event struct {
	ID     string `json:"id"`
	Source string `json:"source"`
	Type   string `json:"type"`
	// Subject is empty without one.
	Subject string `json:"subject,omitempty"`
	// Document is the whole event in the JSON format of CloudEvents, with sorted members.
	Document json.RawMessage `json:"document"`
}

// Key identifies the event among those of all sources: 32 hexadecimal digits of a hash of source
// and id.
func (e Event) Key() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", e.Source, e.ID))
	return hex.EncodeToString(sum[:16])
}

// Attribute returns an attribute that templates can have: "id", "source", "type" or "subject".
func (e Event) Attribute(name string) (value string, known bool) {
	switch name {
	case "id":
		return e.ID, true
	case "source":
		return e.Source, true
	case "type":
		return e.Type, true
	case "subject":
		return e.Subject, true
	}
	return "", false
}

// Attributes lists the names that Attribute knows.
func Attributes() []string { return []string{"id", "source", "subject", "type"} }

// attributeName is the form of the names of attributes (CloudEvents 1.0, "Naming Conventions").
var attributeName = regexp.MustCompile(`^[a-z0-9]{1,64}$`)

// Members that are no attributes.
const (
	memberData   = "data"
	memberBase64 = "data_base64"
)

// Parse reads an event in the JSON format of CloudEvents. The fault is InvalidRequest with the
// member, or TooLarge.
func Parse(document []byte) (Event, error) {
	if !utf8.Valid(document) {
		return Event{}, fault.New(fault.InvalidRequest, "invalid UTF-8 in the event")
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(document, &members); err != nil || members == nil {
		return Event{}, fault.New(fault.InvalidRequest, "malformed event, want a JSON object with specversion, id, source and type")
	}
	return fromMembers(members)
}

// fromMembers checks the members of an event.
func fromMembers(members map[string]json.RawMessage) (e Event, err error) {
	if len(members) > maxAttributes {
		return e, fault.New(fault.InvalidRequest, "%d attributes of an event, want at most %d", len(members), maxAttributes)
	}
	for name, value := range members {
		if string(value) == "null" && name != memberData {
			delete(members, name) // the JSON format allows null for an absent attribute
			continue
		}
		if err := checkMember(name, value); err != nil {
			return e, err
		}
	}
	if _, both := members[memberBase64]; both && members[memberData] != nil {
		return e, fault.Invalid(memberBase64, "an event with data and data_base64, want one of them")
	}
	if version := text(members["specversion"]); version != SpecVersion {
		return e, fault.Invalid("specversion", "%q, want %q", limit.Cut(version, 64), SpecVersion)
	}
	e = Event{ID: text(members["id"]), Source: text(members["source"]), Type: text(members["type"]), Subject: text(members["subject"])}
	for _, required := range []struct{ name, value string }{{"id", e.ID}, {"source", e.Source}, {"type", e.Type}} {
		if required.value == "" {
			return e, fault.Invalid(required.name, "missing or empty, want a text")
		}
	}
	if e.Document, err = encode(members); err != nil {
		return e, fault.New(fault.InvalidRequest, "malformed event, want a JSON object")
	}
	if len(e.Document) > MaxEvent {
		return e, fault.New(fault.TooLarge, "an event of %d bytes of JSON, want at most %d; pass a reference to the data", len(e.Document), MaxEvent)
	}
	return e, nil
}

// checkMember checks the name and the value of a member.
func checkMember(name string, value json.RawMessage) error {
	shown := limit.Cut(name, 64)
	switch {
	case name == memberData:
		return nil
	case name == memberBase64:
		if _, err := base64.StdEncoding.DecodeString(text(value)); err != nil || value[0] != '"' {
			return fault.Invalid(memberBase64, "malformed base64, want that of RFC 4648 with padding")
		}
		return nil
	case !attributeName.MatchString(name):
		return fault.Invalid(shown, "malformed name of an attribute, want 1 to 64 lower-case letters and digits")
	case value[0] == '{' || value[0] == '[':
		return fault.Invalid(shown, "attribute with an object or a list, want a string, a number or a boolean")
	case len(text(value)) > MaxAttribute || !limit.Printable(text(value)):
		return fault.Invalid(shown, "malformed attribute, want at most %d bytes without control characters", MaxAttribute)
	}
	return checkKnown(name, value)
}

// checkKnown checks the value of an attribute that CloudEvents defines.
func checkKnown(name string, value json.RawMessage) error {
	v, want := text(value), ""
	switch name {
	case "specversion", "id", "type":
		want = "a text"
	case "source", "dataschema":
		if _, err := url.Parse(v); err != nil || value[0] != '"' || strings.ContainsAny(v, " \\") {
			return fault.Invalid(name, "malformed URI reference, want one such as /shop/orders")
		}
	case "subject":
		if want = "a text"; v == "" {
			return fault.Invalid(name, "empty subject, want a text or none")
		}
	case "time":
		if _, err := time.Parse(time.RFC3339, v); err != nil {
			return fault.Invalid(name, "malformed time, want RFC 3339, such as 2027-03-01T08:00:00Z")
		}
	case "datacontenttype":
		if _, _, err := mime.ParseMediaType(v); err != nil {
			return fault.Invalid(name, "malformed media type, want one such as application/json")
		}
	}
	if want != "" && value[0] != '"' {
		return fault.Invalid(name, "want %s", want)
	}
	return nil
}

// text returns the value of a JSON string, or the JSON of another value; empty for an absent one.
func text(value json.RawMessage) string {
	var v string
	if len(value) > 0 && value[0] == '"' && json.Unmarshal(value, &v) == nil {
		return v
	}
	return string(value)
}

// New returns an event with attributes and data. Data of a JSON media type is a JSON value, other
// text a string, and the rest is data_base64. Absent data is nil. The fault is as for Parse.
func New(attributes map[string]string, data []byte) (Event, error) {
	members := make(map[string]json.RawMessage, len(attributes)+1)
	for name, value := range attributes {
		if !utf8.ValidString(value) {
			return Event{}, fault.Invalid(limit.Cut(name, 64), "invalid UTF-8 in the attribute")
		}
		if name == memberData || name == memberBase64 {
			return Event{}, fault.Invalid(name, "no attribute, want the data in the body")
		}
		members[name] = quoted(value)
	}
	if data == nil {
		return fromMembers(members)
	}
	kind, _, err := mime.ParseMediaType(attributes["datacontenttype"])
	switch {
	case err == nil && isJSON(kind):
		if !utf8.Valid(data) || !json.Valid(data) {
			return Event{}, fault.Invalid(memberData, "malformed JSON, want that of the type %s", limit.Cut(kind, 64))
		}
		members[memberData] = bytes.TrimSpace(data)
	case utf8.Valid(data):
		members[memberData] = quoted(string(data))
	default:
		members[memberBase64] = quoted(base64.StdEncoding.EncodeToString(data))
	}
	return fromMembers(members)
}

func isJSON(kind string) bool {
	return kind == "application/json" || kind == "text/json" || strings.HasSuffix(kind, "+json")
}

func quoted(text string) json.RawMessage {
	value, _ := encode(text) // a string always has a JSON form
	return value
}

// encode returns a value as compact JSON without escapes for HTML, which would make it longer.
func encode(value any) (json.RawMessage, error) {
	var to bytes.Buffer
	encoder := json.NewEncoder(&to)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSpace(to.Bytes()), err //nolint:wrapcheck // callers only look for an error
}

package record

import (
	"encoding/json"
	"errors"
	"strings"
)

// Pinax is the descriptive record, pinax.json. Every member may be empty.
// Values are trimmed; a single value and a list of one are the same.
type Pinax struct {
	ID          string
	Title       string
	Type        string // DCMI Type, as written
	Creators    []string
	Institution string
	Created     string
	AccessURL   string // empty for a placeholder
	Languages   []string
	Subjects    []string
	Description string
	Source      []string
	Rights      []string
	Places      []string
}

var errNotObject = errors.New("it is not one JSON object")

// ParsePinax parses a pinax. If a member has another type than in the schema, it uses the
// member's text. It ignores unknown members.
func ParsePinax(body []byte) (*Pinax, error) {
	var wire struct {
		ID          texts `json:"id"`
		Title       texts `json:"title"`
		Type        texts `json:"type"`
		Creator     texts `json:"creator"`
		Institution texts `json:"institution"`
		Created     texts `json:"created"`
		AccessURL   texts `json:"access_url"`
		Language    texts `json:"language"`
		Subjects    texts `json:"subjects"`
		Description texts `json:"description"`
		Source      texts `json:"source"`
		Rights      texts `json:"rights"`
		Place       texts `json:"place"`
	}
	body = trimBOM(body)
	if !isObject(body) {
		return nil, errNotObject
	}
	if err := json.Unmarshal(body, &wire); err != nil {
		return nil, errNotObject
	}
	p := &Pinax{
		ID: wire.ID.first(), Title: wire.Title.joined(" : "), Type: wire.Type.first(), Creators: wire.Creator,
		Institution: wire.Institution.joined("; "), Created: wire.Created.first(), AccessURL: wire.AccessURL.first(),
		Languages: wire.Language, Subjects: wire.Subjects, Description: wire.Description.joined("\n\n"),
		Source: wire.Source, Rights: wire.Rights, Places: wire.Place,
	}
	if strings.EqualFold(p.AccessURL, "placeholder") {
		p.AccessURL = ""
	}
	return p, nil
}

func isObject(body []byte) bool {
	for _, c := range body {
		switch c {
		case ' ', '\t', '\r', '\n':
		default:
			return c == '{'
		}
	}
	return false
}

// texts is a string, a number, or a list of them. Values without text (null, objects, blanks)
// are omitted.
type texts []string

func (t *texts) UnmarshalJSON(raw []byte) error {
	*t = nil
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		list = []json.RawMessage{raw}
	}
	for _, item := range list {
		if text := scalar(item); text != "" {
			*t = append(*t, text)
		}
	}
	return nil
}

func (t texts) first() string {
	if len(t) == 0 {
		return ""
	}
	return t[0]
}

func (t texts) joined(by string) string { return strings.Join(t, by) }

// scalar returns the text of a JSON string, number or boolean; "" for others.
func scalar(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return strings.TrimSpace(text)
	}
	switch raw[0] {
	case '{', '[', 'n':
		return ""
	}
	return string(raw)
}

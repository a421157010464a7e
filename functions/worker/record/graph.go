package record

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// Graph is cheimarros.json: the people, places and things that an entity is about, and
// their relations.
type Graph struct {
	Nodes     []Node // by code
	Relations []Relation
}

// Node is one person, place or thing.
type Node struct {
	Code, Type, Label string
	Properties        []Property // by key
}

// Property is a property of a node with its values as text. A reference to another node is
// given by its label, or by its code if it has no label.
type Property struct {
	Key    string
	Values []string
}

// Relation relates two nodes. A relation to a missing node is omitted.
type Relation struct {
	Source, Type, Target string // labels, for reading
}

// ParseGraph parses a cheimarros.json.
func ParseGraph(body []byte) (*Graph, error) {
	type wireNode struct {
		Type       texts                      `json:"type"`
		Label      texts                      `json:"label"`
		Properties map[string]json.RawMessage `json:"properties"`
	}
	var wire struct {
		Entities  map[string]wireNode `json:"entities"`
		Relations []struct {
			Source, Target, Type texts
		} `json:"relations"`
	}
	body = trimBOM(body)
	if !isObject(body) {
		return nil, errNotObject
	}
	if err := json.Unmarshal(body, &wire); err != nil {
		return nil, errNotObject
	}
	label := func(code string) string {
		if text := wire.Entities[code].Label.first(); text != "" {
			return text
		}
		return code
	}
	g := &Graph{}
	for code, node := range wire.Entities {
		n := Node{Code: code, Type: strings.ToLower(node.Type.first()), Label: node.Label.first()}
		for key, raw := range node.Properties {
			if values := propertyValues(raw, label); len(values) > 0 {
				n.Properties = append(n.Properties, Property{Key: key, Values: values})
			}
		}
		slices.SortFunc(n.Properties, func(a, b Property) int { return strings.Compare(a.Key, b.Key) })
		g.Nodes = append(g.Nodes, n)
	}
	slices.SortFunc(g.Nodes, func(a, b Node) int { return strings.Compare(a.Code, b.Code) })
	for _, r := range wire.Relations {
		source, target := r.Source.first(), r.Target.first()
		_, from := wire.Entities[source]
		_, to := wire.Entities[target]
		if from && to {
			g.Relations = append(g.Relations, Relation{Source: label(source), Type: r.Type.first(), Target: label(target)})
		}
	}
	return g, nil
}

// propertyValues returns the value of a property as texts: a scalar, a reference, or a
// list of them.
func propertyValues(raw json.RawMessage, label func(string) string) []string {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		list = []json.RawMessage{raw}
	}
	var values []string
	for _, item := range list {
		var ref struct {
			Code string `json:"code"`
		}
		if isObject(item) && json.Unmarshal(item, &ref) == nil && ref.Code != "" {
			values = append(values, label(ref.Code))
			continue
		}
		if text := scalar(item); text != "" {
			values = append(values, text)
		}
	}
	return values
}

var dateCode = regexp.MustCompile(`^date_(\d{4})(?:_(\d{2})(?:_(\d{2}))?)?$`)

// Date returns the date of a node of type date in W3CDTF, in the precision of its code
// (date_YYYY, date_YYYY_MM, date_YYYY_MM_DD); "" if the code is not a date.
func (n Node) Date() string {
	match := dateCode.FindStringSubmatch(n.Code)
	if match == nil {
		return ""
	}
	text := match[1]
	for _, part := range match[2:] {
		if part != "" {
			text += "-" + part
		}
	}
	return text
}

// Name returns the label of the node, or its code if it has none.
func (n Node) Name() string {
	if n.Label != "" {
		return n.Label
	}
	return n.Code
}

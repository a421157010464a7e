package fan

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Item is the item of a child.
type Item struct {
	// Text is the item. For a matrix it is a JSON object of the values.
	Text string `json:"text"`
	// Matrix has the values of a matrix by axis; nil for a list.
	Matrix map[string]string `json:"matrix,omitempty"`
	// Index is the index of the item in the list that the first run had. In a rerun of the failed
	// children it differs from that of the child.
	Index int `json:"index"`
}

// Child identifies a child of a fan-out, with its item.
type Child struct {
	// Parent is the id of the parent; empty for a rerun of the child alone.
	Parent string `json:"parent,omitempty"`
	// Number is the position of the child among those of its parent, from 0.
	Number int  `json:"number"`
	Item   Item `json:"item"`
}

// Alone returns the child without its parent, for a rerun that the parent does not count; nil for
// nil.
func (c *Child) Alone() *Child {
	if c == nil {
		return nil
	}
	return &Child{Number: c.Number, Item: c.Item}
}

// RunID returns the run id of a child: PARENT.NUMBER. number counts from 0.
func RunID(parent string, number int) string { return fmt.Sprintf("%s.%d", parent, number) }

// ParentOf returns the parent and the number in the id of a child; ok is false for other ids.
func ParentOf(runID string) (parent string, number int, ok bool) {
	at := strings.LastIndexByte(runID, '.')
	if at < 1 {
		return "", 0, false
	}
	number, err := strconv.Atoi(runID[at+1:])
	if err != nil || number < 0 || number >= MaxChildren || RunID(runID[:at], number) != runID {
		return "", 0, false
	}
	return runID[:at], number, true
}

// ListOf returns the items of a list of texts.
func ListOf(texts []string) []Item {
	items := make([]Item, len(texts))
	for i, text := range texts {
		items[i] = Item{Text: text, Index: i}
	}
	return items
}

// Product returns the items of a matrix: all combinations, in the order of the axes. The values of
// the last axis change first.
func Product(axes []Axis) []Item {
	count := Size(axes)
	items := make([]Item, count)
	for i := range items {
		values, rest := make(map[string]string, len(axes)), i
		for _, a := range slices.Backward(axes) {
			values[a.Name] = a.Values[rest%len(a.Values)]
			rest /= len(a.Values)
		}
		text, _ := json.Marshal(values) //nolint:errchkjson // a map of strings
		items[i] = Item{Text: string(text), Matrix: values, Index: i}
	}
	return items
}

// Size returns the number of combinations of a matrix, but at most MaxChildren + 1.
func Size(axes []Axis) int {
	count := min(len(axes), 1)
	for _, a := range axes {
		count = min(count*len(a.Values), MaxChildren+1)
	}
	return count
}

// Read returns the texts of a list in an output: a JSON array, or else the lines without the empty
// ones. member names the member of a JSON object that has the array, with dots between nested
// names; empty reads the whole output. Elements of the array that are no texts keep their JSON.
// It refuses an output that is not UTF-8 or has a NUL, a member that is missing or no array, and
// text that begins as an array and is not one.
func Read(output []byte, member string) ([]string, error) {
	if !utf8.Valid(output) || bytes.IndexByte(output, 0) >= 0 {
		return nil, fmt.Errorf("the output is no text in UTF-8")
	}
	output = bytes.TrimPrefix(output, []byte("\uFEFF"))
	trimmed := bytes.TrimSpace(output)
	if member != "" {
		for name := range strings.SplitSeq(member, ".") {
			var object map[string]json.RawMessage
			if json.Unmarshal(trimmed, &object) != nil || object[name] == nil {
				return nil, fmt.Errorf("the output has no member %s, want a JSON object with it", member)
			}
			trimmed = object[name]
		}
	}
	var list []json.RawMessage
	if json.Unmarshal(trimmed, &list) == nil {
		return texts(list), nil
	}
	if member != "" {
		return nil, fmt.Errorf("the member %s of the output is no list, want a JSON array", member)
	}
	lines := Lines(string(output))
	if bytes.HasPrefix(trimmed, []byte("[")) && slices.ContainsFunc(lines, func(line string) bool { return !json.Valid([]byte(line)) }) {
		return nil, fmt.Errorf("the output begins with [ and is no JSON array, want one, or lines")
	}
	return lines, nil
}

// Lines returns the lines of a text, without the empty ones.
func Lines(text string) []string {
	var found []string
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\r\n"); line != "" {
			found = append(found, line)
		}
	}
	return found
}

func texts(list []json.RawMessage) []string {
	found := make([]string, len(list))
	for i, element := range list {
		if json.Unmarshal(element, &found[i]) == nil && element[0] == '"' {
			continue
		}
		var compact bytes.Buffer
		_ = json.Compact(&compact, element) // it was read before
		found[i] = compact.String()
	}
	return found
}

// Check returns an error if there are too many items, or if one has a NUL or is too large.
func Check(items []Item) error {
	if len(items) > MaxChildren {
		return fmt.Errorf("%d items, want at most %d", len(items), MaxChildren)
	}
	size := 0
	for i, item := range items {
		size += len(item.Text)
		switch {
		case len(item.Text) > MaxItem:
			return fmt.Errorf("item %d has %d bytes, want at most %d", i, len(item.Text), MaxItem)
		case strings.Contains(item.Text, "\x00") || !utf8.ValidString(item.Text):
			return fmt.Errorf("item %d is no text in UTF-8 without NUL", i)
		}
	}
	if size > MaxItems {
		return fmt.Errorf("%d bytes of items, want at most %d; pass names of files or objects", size, MaxItems)
	}
	return nil
}

// Digest identifies a list of items: the hexadecimal SHA-256 of its JSON.
func Digest(items []Item) string {
	text, _ := json.Marshal(items) //nolint:errchkjson // texts and numbers
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// partSize is the size in bytes of a part of a stored list, before it is encoded as JSON.
const partSize = 64 << 10

// Parts splits a list into parts that are stored one by one. It has at least one.
func Parts(items []Item) [][]Item {
	parts, size, from := [][]Item{}, 0, 0
	for i, item := range items {
		// An item of a matrix has its values twice.
		if length := 2*len(item.Text) + 32; size+length > partSize && i > from {
			parts, size, from = append(parts, items[from:i]), length, i
		} else {
			size += length
		}
	}
	return append(parts, items[from:])
}

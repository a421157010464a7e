package job

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Canonical returns the definition as JSON in a canonical form. Two definitions are equal if
// their canonical forms are.
func (d Definition) Canonical() ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(d); err != nil {
		return nil, fmt.Errorf("cannot encode the definition: %w", err)
	}
	return bytes.TrimSpace(text.Bytes()), nil
}

// Digest returns the SHA-256 of the canonical form, in hexadecimal.
func (d Definition) Digest() (string, error) {
	text, err := d.Canonical()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// Merge applies a JSON merge patch (RFC 7396) to the definition. It returns the resulting document,
// which is not validated, or the syntax problems of the patch.
func (d Definition) Merge(patch []byte) ([]byte, []Problem, error) {
	text, err := d.Canonical()
	if err != nil {
		return nil, nil, err
	}
	target, found := readObject(text)
	if len(found) > 0 {
		return nil, nil, fmt.Errorf("cannot read the definition: %v", found)
	}
	changes, found := readObject(patch)
	if len(found) > 0 {
		return nil, found, nil
	}
	merged, err := json.Marshal(merge(target, changes))
	if err != nil {
		return nil, nil, fmt.Errorf("cannot encode the merged definition: %w", err)
	}
	return merged, nil, nil
}

// readObject returns a document as a map, with the values that encoding/json would decode.
func readObject(document []byte) (map[string]any, []Problem) {
	root, problem := readTree(document)
	switch {
	case problem != nil:
		return nil, []Problem{*problem}
	case root.kind != kindObject:
		return nil, []Problem{{Line: root.line, Problem: "document is " + string(root.kind) + ", want an object with the fields to change"}}
	}
	p := &problems{lines: map[string]int{}}
	object, _ := p.plain(root, "").(map[string]any)
	return object, p.sorted()
}

// merge applies a JSON merge patch to a value.
func merge(target any, patch map[string]any) map[string]any {
	object, ok := target.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	for name, value := range patch {
		switch change := value.(type) {
		case nil:
			delete(object, name)
		case map[string]any:
			object[name] = merge(object[name], change)
		default:
			object[name] = value
		}
	}
	return object
}

// Change is a field in which two definitions differ.
type Change struct {
	// Field is the path of a field, such as "constraints.catchUp".
	Field string
	// Before and After are the values as JSON; empty if the field is absent.
	Before, After string
}

// String returns the change as a line of text.
func (c Change) String() string {
	switch {
	case c.Before == "":
		return fmt.Sprintf("+ %s: %s", c.Field, c.After)
	case c.After == "":
		return fmt.Sprintf("- %s: %s", c.Field, c.Before)
	}
	return fmt.Sprintf("~ %s: %s -> %s", c.Field, c.Before, c.After)
}

// Diff returns the fields in which two definitions differ, sorted.
func Diff(before, after Definition) ([]Change, error) {
	was, err := before.fields()
	if err != nil {
		return nil, err
	}
	is, err := after.fields()
	if err != nil {
		return nil, err
	}
	var changes []Change
	for _, f := range is {
		if old := valueOf(was, f.path); old != f.value {
			changes = append(changes, Change{f.path, old, f.value})
		}
	}
	for _, f := range was {
		if valueOf(is, f.path) == "" {
			changes = append(changes, Change{f.path, f.value, ""})
		}
	}
	slices.SortStableFunc(changes, func(a, b Change) int { return strings.Compare(a.Field, b.Field) })
	return changes, nil
}

// leaf is a value that is not an object, with its path.
type leaf struct{ path, value string }

func valueOf(fields []leaf, path string) string {
	if i := slices.IndexFunc(fields, func(f leaf) bool { return f.path == path }); i >= 0 {
		return fields[i].value
	}
	return ""
}

func (d Definition) fields() ([]leaf, error) {
	text, err := d.Canonical()
	if err != nil {
		return nil, err
	}
	return leaves(nil, "", text)
}

// leaves appends the leaves of a JSON value at path to found.
func leaves(found []leaf, path string, text json.RawMessage) ([]leaf, error) {
	var members map[string]json.RawMessage
	if text[0] != '{' {
		return append(found, leaf{path, string(text)}), nil
	}
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, fmt.Errorf("cannot read %s of the definition: %w", path, err)
	}
	if len(members) == 0 && path != "" {
		return append(found, leaf{path, "{}"}), nil
	}
	var err error
	for name, value := range members {
		if found, err = leaves(found, join(path, name), value); err != nil {
			return nil, err
		}
	}
	return found, nil
}

package label

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/shared/base/limit"
)

// maxSelector is the maximum size of a selector, in bytes.
const maxSelector = 4 << 10

// Selector selects labels that meet all its requirements. The zero value selects all.
type Selector []requirement

// requirement is met by labels whose value of the key is one of the values. Without values it is
// met by labels with the key. negated reverses both, so it is met by labels without the key.
type requirement struct {
	key     string
	values  []string
	negated bool
}

// Matches reports whether the labels meet all requirements.
func (s Selector) Matches(labels map[string]string) bool {
	return !slices.ContainsFunc(s, func(r requirement) bool {
		value, has := labels[r.key]
		return (has && (r.values == nil || slices.Contains(r.values, value))) == r.negated
	})
}

// Parse reads a selector: requirements that are separated by commas, as KEY=VALUE, KEY==VALUE,
// KEY!=VALUE, KEY in (VALUE,VALUE), KEY notin (VALUE,VALUE), KEY or !KEY. != and notin also select
// labels without the key. The empty text selects all.
func Parse(text string) (Selector, error) {
	if len(text) > maxSelector {
		return nil, fmt.Errorf("selector of %d bytes, want at most %d", len(text), maxSelector)
	}
	if text == "" {
		return nil, nil
	}
	var selector Selector
	for rest, more := text, true; more; {
		var part string
		part, rest, more = next(rest)
		r, problem := parseRequirement(strings.TrimSpace(part))
		if problem != "" {
			return nil, fmt.Errorf("%q: %s", limit.Cut(strings.TrimSpace(part), limit.FileName), problem)
		}
		if selector = append(selector, r); len(selector) > Most {
			return nil, fmt.Errorf("more than %d requirements, want at most %d", Most, Most)
		}
	}
	return selector, nil
}

// next cuts the text at its first comma outside of parentheses.
func next(text string) (part, rest string, more bool) {
	open := strings.IndexByte(text, '(')
	comma := strings.IndexByte(text, ',')
	if open >= 0 && open < comma {
		end := strings.IndexByte(text[open:], ')')
		if end < 0 {
			return text, "", false
		}
		end += open
		if comma = strings.IndexByte(text[end:], ','); comma >= 0 {
			comma += end
		}
	}
	if comma < 0 {
		return text, "", false
	}
	return text[:comma], text[comma+1:], true
}

// parseRequirement returns a requirement, or what is wrong with the text.
func parseRequirement(text string) (r requirement, problem string) {
	const syntax = "malformed requirement, want KEY=VALUE, KEY!=VALUE, KEY in (VALUE,VALUE), KEY notin (VALUE,VALUE), KEY or !KEY"
	key, value, equals := strings.Cut(text, "=")
	head, set, isSet := strings.Cut(text, "(")
	switch words := strings.Fields(head); {
	case isSet:
		set, closed := strings.CutSuffix(set, ")")
		if !closed || len(words) != 2 || words[1] != "in" && words[1] != "notin" {
			return r, syntax
		}
		r = requirement{key: words[0], negated: words[1] == "notin", values: strings.Split(set, ",")}
	case equals:
		before, negated := strings.CutSuffix(key, "!")
		if !negated {
			value = strings.TrimPrefix(value, "=")
		}
		r = requirement{key: strings.TrimSpace(before), negated: negated, values: []string{value}}
	default:
		after, negated := strings.CutPrefix(text, "!")
		r = requirement{key: strings.TrimSpace(after), negated: negated}
	}
	if !ValidKey(r.key) {
		return r, "malformed key, " + wantKey
	}
	for i, value := range r.values {
		if r.values[i] = strings.TrimSpace(value); !ValidValue(r.values[i]) {
			return r, "malformed value, " + wantValue
		}
	}
	return r, ""
}

package path

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseError reports the first mistake in a path.
type ParseError struct {
	Text   string
	Offset int // in bytes
	What   string
}

func (e *ParseError) Error() string {
	return fmt.Sprintf("%q is not a path: %s at byte %d", e.Text, e.What, e.Offset)
}

// maxLength limits the text of a path, and with it the recursion of filters.
const maxLength = 4096

// Parse parses a path. The error is a *ParseError.
func Parse(text string) (Path, error) {
	p := &parser{text: text}
	if len(text) > maxLength {
		return Path{}, p.fail("too long")
	}
	if !p.take("$") {
		return Path{}, p.fail("missing $")
	}
	path := Path{text: text, context: p.take("$"), definite: true}
	steps, definite, err := p.steps(func() bool { return p.at == len(p.text) })
	if err != nil {
		return Path{}, err
	}
	path.steps, path.definite = steps, definite
	return path, nil
}

type parser struct {
	text string
	at   int
}

func (p *parser) fail(what string) error {
	return &ParseError{Text: p.text, Offset: p.at, What: what}
}

func (p *parser) take(token string) bool {
	if strings.HasPrefix(p.text[p.at:], token) {
		p.at += len(token)
		return true
	}
	return false
}

func (p *parser) space() {
	for p.at < len(p.text) && (p.text[p.at] == ' ' || p.text[p.at] == '\t' || p.text[p.at] == '\n' || p.text[p.at] == '\r') {
		p.at++
	}
}

// steps parses steps until end returns true or no step follows.
func (p *parser) steps(end func() bool) (steps []step, definite bool, err error) {
	definite = true
	for !end() {
		var next step
		switch {
		case p.take(".."):
			if next, err = p.dotted(); err == nil {
				next = deepStep{next: next}
			}
		case p.take("."):
			next, err = p.dotted()
		case p.at < len(p.text) && p.text[p.at] == '[':
			next, err = p.bracket()
		default:
			err = p.fail("expected '.' or '['")
		}
		if err != nil {
			return nil, false, err
		}
		switch next.(type) {
		case nameStep, indexStep, lengthStep:
		default:
			definite = false
		}
		steps = append(steps, next)
	}
	return steps, definite, nil
}

// dotted parses the part after a dot: a name, a wildcard, a function or, after two dots, a
// bracket.
func (p *parser) dotted() (step, error) {
	if p.take("*") {
		return wildcardStep{}, nil
	}
	if p.at < len(p.text) && p.text[p.at] == '[' {
		return p.bracket()
	}
	start := p.at
	for p.at < len(p.text) && !strings.ContainsRune(".[](),'\"=<>!&|~ \t\r\n$@*?", rune(p.text[p.at])) {
		p.at++
	}
	name := p.text[start:p.at]
	if name == "" {
		return nil, p.fail("missing name")
	}
	if p.take("()") {
		if name != "length" {
			p.at = start
			return nil, p.fail("the function " + name + "() is not supported")
		}
		return lengthStep{}, nil
	}
	return nameStep{name: name}, nil
}

func (p *parser) bracket() (step, error) {
	p.at++
	p.space()
	if p.at >= len(p.text) {
		return nil, p.fail("expected ']'")
	}
	var (
		next step
		err  error
	)
	switch c := p.text[p.at]; {
	case p.take("*"):
		next = wildcardStep{}
	case c == '\'' || c == '"':
		next, err = p.names()
	case c == '?':
		next, err = p.filter()
	default:
		next, err = p.indexes()
	}
	if err != nil {
		return nil, err
	}
	p.space()
	if !p.take("]") {
		return nil, p.fail("expected ']'")
	}
	return next, nil
}

func (p *parser) names() (step, error) {
	var names []string
	for {
		p.space()
		name, err := p.quoted()
		if err != nil {
			return nil, err
		}
		names = append(names, name)
		p.space()
		if !p.take(",") {
			break
		}
	}
	if len(names) == 1 {
		return nameStep{name: names[0]}, nil
	}
	return namesStep{names: names}, nil
}

// quoted parses a string in single or double quotes. A backslash escapes the quote and itself.
// Before any other character it is a literal [recorded].
func (p *parser) quoted() (string, error) {
	if p.at >= len(p.text) || p.text[p.at] != '\'' && p.text[p.at] != '"' {
		return "", p.fail("expected a quote")
	}
	quote := p.text[p.at]
	p.at++
	var out strings.Builder
	for p.at < len(p.text) {
		c := p.text[p.at]
		p.at++
		switch {
		case c == quote:
			return out.String(), nil
		case c == '\\' && p.at < len(p.text) && (p.text[p.at] == quote || p.text[p.at] == '\\'):
			out.WriteByte(p.text[p.at])
			p.at++
		default:
			out.WriteByte(c)
		}
	}
	return "", p.fail("missing quote")
}

func (p *parser) indexes() (step, error) {
	var bounds [3]*int
	count, list := 0, []int{}
	for {
		p.space()
		if n, ok := p.integer(); ok {
			bounds[count] = &n
			list = append(list, n)
		}
		p.space()
		if !p.take(":") {
			break
		}
		if count++; count == len(bounds) {
			return nil, p.fail("a slice has at most three parts")
		}
	}
	if count > 0 {
		if bounds[2] != nil && *bounds[2] < 1 {
			return nil, p.fail("the step of a slice is positive")
		}
		return sliceStep{from: bounds[0], to: bounds[1], step: bounds[2]}, nil
	}
	if len(list) == 0 {
		return nil, p.fail("expected a name, an index, '*' or '?'")
	}
	for p.take(",") {
		p.space()
		n, ok := p.integer()
		if !ok {
			return nil, p.fail("expected an index")
		}
		list = append(list, n)
		p.space()
	}
	if len(list) == 1 {
		return indexStep{index: list[0]}, nil
	}
	return indexesStep{indexes: list}, nil
}

func (p *parser) integer() (int, bool) {
	end := p.at
	if end < len(p.text) && p.text[end] == '-' {
		end++
	}
	for end < len(p.text) && p.text[end] >= '0' && p.text[end] <= '9' {
		end++
	}
	n, err := strconv.Atoi(p.text[p.at:end])
	if err != nil {
		return 0, false
	}
	p.at = end
	return n, true
}

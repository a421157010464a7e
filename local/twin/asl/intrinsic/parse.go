package intrinsic

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/local/twin/asl/path"
)

// ParseError reports the first mistake in a call.
type ParseError struct {
	Text   string
	Offset int // in bytes
	What   string
}

func (e *ParseError) Error() string {
	return fmt.Sprintf("%q is not an intrinsic function call: %s at byte %d", e.Text, e.What, e.Offset)
}

// maxLength limits the text of a call.
const maxLength = 10_000

// Parse parses one call, such as "States.Format('Hello {}', $.name)". The error
// is a *ParseError.
func Parse(text string) (*Call, error) {
	p := &parser{text: text}
	if len(text) > maxLength {
		return nil, p.fail("too long")
	}
	p.space()
	call, err := p.call(1)
	if err != nil {
		return nil, err
	}
	p.space()
	if p.at < len(text) {
		return nil, p.fail("unexpected text after the call")
	}
	return call, nil
}

type parser struct {
	text string
	at   int
}

func (p *parser) fail(what string) error {
	return &ParseError{Text: p.text, Offset: p.at, What: what}
}

func (p *parser) space() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
}

func (p *parser) take(c byte) bool {
	if p.at < len(p.text) && p.text[p.at] == c {
		p.at++
		return true
	}
	return false
}

func (p *parser) call(depth int) (*Call, error) {
	if depth > MaxDepth {
		return nil, p.fail(fmt.Sprintf("nested more than %d levels", MaxDepth))
	}
	start := p.at
	for p.at < len(p.text) && (p.text[p.at] == '.' || isAlphanumeric(p.text[p.at])) {
		p.at++
	}
	name := p.text[start:p.at]
	f, err := lookUp(name)
	if err != nil {
		p.at = start
		return nil, p.fail(err.Error())
	}
	p.space()
	if !p.take('(') {
		return nil, p.fail("expected '('")
	}
	c := &Call{name: name, function: f}
	p.space()
	for !p.take(')') {
		if len(c.args) > 0 && !p.take(',') {
			return nil, p.fail("expected ',' or ')'")
		}
		p.space()
		a, err := p.arg(depth)
		if err != nil {
			return nil, err
		}
		c.args = append(c.args, a)
		p.space()
	}
	if len(c.args) < f.least || f.most >= 0 && len(c.args) > f.most {
		return nil, p.fail(fmt.Sprintf("%s does not take %d arguments", name, len(c.args)))
	}
	return c, nil
}

func isAlphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func (p *parser) arg(depth int) (arg, error) {
	if p.at >= len(p.text) {
		return arg{}, p.fail("expected an argument")
	}
	switch c := p.text[p.at]; {
	case c == '\'':
		return p.quoted()
	case c == '$':
		return p.path()
	case strings.HasPrefix(p.text[p.at:], Prefix):
		call, err := p.call(depth + 1)
		return arg{kind: callArg, call: call}, err
	}
	start := p.at
	for p.at < len(p.text) && (isAlphanumeric(p.text[p.at]) || strings.IndexByte("+-.", p.text[p.at]) >= 0) {
		p.at++
	}
	switch word := p.text[start:p.at]; word {
	case "true", "false":
		return arg{literal: word == "true"}, nil
	case "null":
		return arg{}, nil
	default:
		if !json.Valid([]byte(word)) {
			p.at = start
			return arg{}, p.fail("expected a string in single quotes, a number, a path or a call")
		}
		if _, err := strconv.ParseFloat(word, 64); err != nil {
			p.at = start
			return arg{}, p.fail("the number is too large")
		}
		return arg{literal: json.Number(word)}, nil
	}
}

func (p *parser) quoted() (arg, error) {
	p.at++
	start := p.at
	for p.at < len(p.text) && p.text[p.at] != '\'' {
		if p.text[p.at] == '\\' {
			p.at++
		}
		p.at++
	}
	if p.at >= len(p.text) {
		p.at = start
		return arg{}, p.fail("missing quote")
	}
	raw := p.text[start:p.at]
	text, err := unescape(raw)
	if err != nil {
		p.at = start
		return arg{}, p.fail(err.Error())
	}
	p.at++
	return arg{literal: text, raw: raw}, nil
}

// unescape resolves the language's escapes: \' \{ \} and \\.
func unescape(raw string) (string, error) {
	if strings.IndexByte(raw, '\\') < 0 {
		return raw, nil
	}
	var out strings.Builder
	for i := 0; i < len(raw); i++ {
		if raw[i] == '\\' {
			if i++; i == len(raw) || strings.IndexByte(`'{}\`, raw[i]) < 0 {
				return "", fmt.Errorf("unknown escape")
			}
		}
		out.WriteByte(raw[i])
	}
	return out.String(), nil
}

// path parses up to the comma or parenthesis that ends the argument.
func (p *parser) path() (arg, error) {
	start, depth, quote := p.at, 0, byte(0)
	for ; p.at < len(p.text); p.at++ {
		c := p.text[p.at]
		switch {
		case quote != 0:
			if c == '\\' {
				p.at++
			} else if c == quote {
				quote = 0
			}
			continue
		case depth > 0 && (c == '\'' || c == '"'):
			quote = c
		case c == '[' || c == '(':
			depth++
		case depth > 0 && (c == ']' || c == ')'):
			depth--
		}
		if depth == 0 && (c == ',' || c == ')' && !strings.HasSuffix(p.text[start:p.at], "(")) {
			break
		}
	}
	text := strings.TrimRight(p.text[start:min(p.at, len(p.text))], " \t\r\n")
	found, err := path.Parse(text)
	if err != nil {
		p.at = start
		return arg{}, p.fail(err.Error())
	}
	return arg{kind: pathArg, path: found}, nil
}
